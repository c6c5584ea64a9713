"""What callers are told, in English and Korean."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from sellerwatch.entry.api.asked import (
    AGENT_PATTERN,
    CURSOR_PATTERN,
    NOT_BLANK_PATTERN,
    SELLER_PATTERN,
    UUID_PATTERN,
    VISIBLE_PATTERN,
)


@dataclass(frozen=True, slots=True)
class Words:
    title: str
    english: str
    korean: str


WORDS: Final[Mapping[str, Words]] = {
    "INVALID_INPUT": Words("Invalid input", "The request has invalid values.", "요청 값이 올바르지 않습니다."),
    "MALFORMED_REQUEST": Words(
        "Malformed request", "The request could not be understood.", "요청을 해석할 수 없습니다."
    ),
    "UNAUTHORIZED": Words("Not authenticated", "A valid access token is required.", "유효한 액세스 토큰이 필요합니다."),
    "NO_KEY": Words("Not authenticated", "A valid API key is required.", "유효한 API 키가 필요합니다."),
    "FORBIDDEN": Words("Not allowed", "You are not allowed to do this.", "이 작업을 수행할 권한이 없습니다."),
    "NOT_FOUND": Words("Not found", "What was asked for does not exist.", "요청한 대상을 찾을 수 없습니다."),
    "SELLER_NOT_FOUND": Words("Seller not found", "There is no such seller.", "판매자를 찾을 수 없습니다."),
    "EXECUTION_NOT_FOUND": Words("Execution not found", "There is no such execution.", "크롤링 실행을 찾을 수 없습니다."),
    "PRODUCT_NOT_FOUND": Words("Product not found", "There is no such product.", "상품을 찾을 수 없습니다."),
    "IDENTITY_NOT_FOUND": Words("Identity not found", "There is no such User-Agent.", "User-Agent를 찾을 수 없습니다."),
    "OUTBOX_ROW_NOT_FOUND": Words("Outbox row not found", "There is no such outbox row.", "아웃박스 항목을 찾을 수 없습니다."),
    "QUARANTINE_NOT_FOUND": Words("Quarantine not found", "There is no such quarantine.", "격리 항목을 찾을 수 없습니다."),
    "METHOD_NOT_ALLOWED": Words(
        "Method not allowed", "This address does not take this method.", "이 주소에서 지원하지 않는 메서드입니다."
    ),
    "CONFLICT": Words("Conflict", "A rule does not allow this now.", "현재 상태에서는 수행할 수 없습니다."),
    "REFUSED": Words("Refused", "A rule does not allow this.", "규칙에 어긋나 수행할 수 없습니다."),
    "WRONG_STATE": Words("Wrong state", "Its state does not allow this.", "현재 상태에서는 수행할 수 없습니다."),
    "SELLER_ALREADY_EXISTS": Words(
        "Seller already exists", "This seller is registered already.", "이미 등록된 판매자입니다."
    ),
    "SELLER_INACTIVE": Words(
        "Seller inactive",
        "This seller is inactive: activate it first.",
        "비활성 상태의 판매자입니다. 먼저 활성화하세요.",
    ),
    "EXECUTION_IN_PROGRESS": Words(
        "Execution in progress", "This seller is being crawled already.", "이미 크롤링이 진행 중인 판매자입니다."
    ),
    "NOTHING_TO_CONFIRM": Words(
        "Nothing to confirm",
        "No delisting of this seller waits to be confirmed.",
        "확인을 기다리는 판매 종료 처리가 없습니다.",
    ),
    "BODY_TOO_LARGE": Words("Body too large", "The request body is too large.", "요청 본문이 너무 큽니다."),
    "UNSUPPORTED_MEDIA_TYPE": Words(
        "Unsupported media type",
        "The body must be uncompressed application/json.",
        "본문은 압축되지 않은 application/json이어야 합니다.",
    ),
    "TOO_MANY_REQUESTS": Words("Too many requests", "Too many requests: wait a little.", "요청이 너무 많습니다. 잠시 후 다시 시도하세요."),
    "INTERNAL_ERROR": Words("Internal error", "Something went wrong inside.", "내부 오류가 발생했습니다."),
    "UNAVAILABLE": Words(
        "Temporarily unavailable",
        "Something this needs is away: try again soon.",
        "일시적으로 사용할 수 없습니다. 잠시 후 다시 시도하세요.",
    ),
}  # fmt: skip

FORMS: Final[Mapping[str, tuple[str, str]]] = {
    SELLER_PATTERN: ("1 to 64 of A-Z a-z 0-9 . _ -", "A-Z a-z 0-9 . _ - 1~64자"),
    UUID_PATTERN: ("a UUID in small letters", "소문자 UUID"),
    AGENT_PATTERN: ("a number, or a UUID in small letters", "번호 또는 소문자 UUID"),
    CURSOR_PATTERN: ("the nextCursor of an answer", "이전 응답의 nextCursor 값"),
    VISIBLE_PATTERN: ("printable ASCII without blanks", "공백 없는 ASCII 문자"),
    NOT_BLANK_PATTERN: ("more than blanks", "공백만으로는 안 됩니다"),
}
"""What a pattern asks for."""

FIELD_WORDS: Final[Mapping[str, tuple[str, str]]] = {
    "missing": ("is required", "필수 값입니다"),
    "extra_forbidden": ("is not a known field", "알 수 없는 필드입니다"),
    "string_type": ("is not a text", "문자열이어야 합니다"),
    "int_type": ("is not a whole number", "정수여야 합니다"),
    "bool_type": ("is not true or false", "true 또는 false여야 합니다"),
    "string_too_short": ("is shorter than {min_length}", "{min_length}자 이상이어야 합니다"),
    "string_too_long": ("is longer than {max_length}", "{max_length}자 이하여야 합니다"),
    "string_pattern_mismatch": ("is not {form}", "형식이 올바르지 않습니다 ({form})"),
    "greater_than_equal": ("is less than {ge}", "{ge} 이상이어야 합니다"),
    "less_than_equal": ("is greater than {le}", "{le} 이하여야 합니다"),
    "literal_error": ("is not {expected}", "{expected} 중 하나여야 합니다"),
    "expected": ("is not {expected}", "올바르지 않습니다 ({expected})"),
    "model_attributes_type": ("is not a JSON object", "JSON 객체여야 합니다"),
    "dict_type": ("is not a JSON object", "JSON 객체여야 합니다"),
    "value_error": ("is not of the right form", "형식이 올바르지 않습니다"),
    "finite_number": ("is not a finite number", "유한한 숫자여야 합니다"),
    "list_type": ("is not a list", "목록이어야 합니다"),
    "too_long": ("has more than {max_length} entries", "{max_length}개 이하여야 합니다"),
    "too_short": ("has fewer than {min_length} entries", "{min_length}개 이상이어야 합니다"),
    "int_parsing": ("is not a whole number", "정수여야 합니다"),
    "enum": ("is not {expected}", "{expected} 중 하나여야 합니다"),
    "other": ("is not valid", "올바르지 않습니다"),
}
