"""The stand-in for AWS is what the tests that rest on it take it for."""

import pytest

import conformance
import servers


@pytest.mark.slow
async def test_the_stand_in_differs_from_aws_only_where_it_is_known_to(aws_server: servers.Aws) -> None:
    found = await conformance.run(aws_server)
    aws_server.forget()
    assert {sentence for sentence, aws, here in found if aws is not here} == set(conformance.KNOWN)
