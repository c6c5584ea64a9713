"""A client of one AWS service, and what its errors mean.

Promises: one client, opened when it is first used and kept; credentials by the AWS chain and nowhere else; with an
endpoint given no other host is spoken to, by no proxy of the environment. Every failure is one clear line that names
the service, the call and the cause. What AWS says besides is not repeated: a signature's error quotes the headers.
"""

import asyncio
from contextlib import AsyncExitStack
from functools import cache
from typing import Any, Final

from aiobotocore.config import AioConfig
from aiobotocore.session import AioSession, get_session
from botocore.exceptions import (
    BotoCoreError,
    ClientError,
    ConnectionError,  # noqa: A004 - botocore's own, and not the builtin
    CredentialRetrievalError,
    HTTPClientError,
    NoCredentialsError,
    NoRegionError,
    ParamValidationError,
    PartialCredentialsError,
)

import sellerwatch
from sellerwatch.domain.errors import Invalid, Trouble, Unavailable

CONNECT_SECONDS: Final = 2.0
WAIT_SECONDS_MAX: Final = 5
"""As long may one call wait for a message: a client has one time-out for all calls, and it must be longer."""
ANSWER_SECONDS: Final = WAIT_SECONDS_MAX + 5.0
CONNECTIONS: Final = 32
NAMES: Final = {"sqs": "SQS", "events": "EventBridge"}

_CREDENTIALS = frozenset(
    {
        "ExpiredToken",
        "ExpiredTokenException",
        "IncompleteSignature",
        "InvalidClientTokenId",
        "InvalidSignatureException",
        "MissingAuthenticationToken",
        "RequestExpired",
        "SignatureDoesNotMatch",
        "UnrecognizedClientException",
    }
)
_FORBIDDEN = frozenset({"AccessDenied", "AccessDeniedException", "AuthorizationError", "NotAuthorized"})
_LATER = frozenset(
    {
        "ConcurrentModificationException",
        "InternalError",
        "InternalException",
        "InternalFailure",
        "InternalServerError",
        "RequestThrottled",
        "RequestTimeout",
        "ServiceUnavailable",
        "Throttled",
        "Throttling",
        "ThrottlingException",
        "TooManyRequestsException",
    }
)


class Declined(Trouble):
    """AWS understood and said no. Asking again as it is now will not change that."""

    def __init__(self, message: str, code: str) -> None:
        super().__init__(message)
        self.code = code


class Forbidden(Unavailable):
    """The role may not. Nothing of the work is to blame, so it waits; but only a person can change it."""


class Missing(Unavailable):
    """The queue, rule or bus is not there (yet)."""


class Connection:
    """`call` speaks to the service; `close` ends it. Both as often as wanted."""

    def __init__(self, service: str, region: str | None, endpoint: str | None) -> None:
        self._service, self._region, self._endpoint = service, region, endpoint
        self._stack = AsyncExitStack()
        self._opening = asyncio.Lock()
        self._client: Any = None

    async def call(self, operation: str, **parameters: Any) -> dict[str, Any]:
        client = self._client or await self._opened()
        try:
            answer: dict[str, Any] = await getattr(client, operation)(**parameters)
        except (ClientError, BotoCoreError) as error:
            raise self._meant(operation, error) from None
        return answer

    async def close(self) -> None:
        self._client = None
        await self._stack.aclose()

    async def _opened(self) -> Any:
        async with self._opening:
            if self._client is None:
                config = AioConfig(
                    connect_timeout=CONNECT_SECONDS,
                    read_timeout=ANSWER_SECONDS,
                    max_pool_connections=CONNECTIONS,
                    # Twice at most: what waits longer is a row, and its time to come again stands in it.
                    retries={"mode": "standard", "total_max_attempts": 2},
                    # Empty, and not absent: absent means those of the environment.
                    proxies={},
                    # Said once: put together anew for each call it is a tenth of what a call costs.
                    user_agent=f"sellerwatch/{sellerwatch.__version__}",
                    parameter_validation=False,
                )
                try:
                    self._client = await self._stack.enter_async_context(
                        _session().create_client(
                            self._service, region_name=self._region, endpoint_url=self._endpoint, config=config
                        )
                    )
                except NoRegionError:
                    raise Invalid("region", "", "given: put ?region=… into the address, or set AWS_REGION") from None
                except BotoCoreError as error:
                    raise Unavailable(f"{NAMES[self._service]} has no client: {type(error).__name__}") from None
            return self._client

    def _meant(self, operation: str, error: Exception) -> Trouble:
        name, call = NAMES[self._service], operation.replace("_", " ")
        if isinstance(error, ClientError):
            return self._answered(name, call, error)
        if isinstance(error, (NoCredentialsError, PartialCredentialsError, CredentialRetrievalError)):
            return Unavailable(f"{name}: the AWS chain has no credentials ({type(error).__name__})")
        if isinstance(error, (HTTPClientError, ConnectionError)):
            where = self._endpoint or "AWS"
            return Unavailable(f"{name} at {where} does not answer ({call}: {type(error).__name__})")
        if isinstance(error, ParamValidationError):
            return Declined(f"{name} cannot be asked so ({call})", "ParamValidation")
        return Unavailable(f"{name} failed ({call}: {type(error).__name__})")

    def _answered(self, name: str, call: str, error: ClientError) -> Trouble:
        response: Any = error.response
        code = str(response.get("Error", {}).get("Code", "")).rpartition(".")[2] or "no code"
        status = int(response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0))
        if code in {"NonExistentQueue", "QueueDoesNotExist", "ResourceNotFoundException"}:
            return Missing(f"{name}: {call}: {code}")
        if code in _CREDENTIALS:
            return Unavailable(f"{name} refuses the credentials of the AWS chain ({call}: {code})")
        if code in _FORBIDDEN or status == 403:
            return Forbidden(f"{name} does not allow {call} ({code}): the role lacks a permission, see docs/aws.md")
        if code in _LATER or status >= 500 or status == 429:
            return Unavailable(f"{name} says later ({call}: {code})")
        return Declined(f"{name} declines {call} ({code})", code)


@cache
def _session() -> AioSession:
    """One for the process: making it reads a megabyte of descriptions, and it keeps the credentials it was given."""
    return get_session()
