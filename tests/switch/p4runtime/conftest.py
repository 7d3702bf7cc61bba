"""The program all tests of the server run."""

import pytest

from .rig import HERE, Built, Names, compile_p4


@pytest.fixture(scope="session")
def built(tmp_path_factory: pytest.TempPathFactory) -> Built:
    return compile_p4(HERE / "everything.p4", tmp_path_factory.mktemp("everything"))


@pytest.fixture(scope="session")
def names(built: Built) -> Names:
    return Names(built.info)
