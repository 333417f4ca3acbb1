"""What the scripts about many ranks share: how mpirun is started, and the study of which they measure rows."""

import os
import pathlib

GAUSSIAN_STUDY = pathlib.Path(__file__).resolve().parents[2] / "experiments" / "convergence" / "gaussian_mmd.toml"


def with_ranks(ranks, command):
    return ["mpirun", "-n", str(ranks), *command] if ranks > 1 else command


def environment(**more):
    """That of this process; mpirun may run as root, which it is in a container."""
    return {**os.environ, "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1", **more}


def settings(**values):
    """Words of a command line: settings(particles__count=3) is --set particles.count=3."""
    return [word for key, value in values.items() for word in ("--set", f"{key.replace('__', '.')}={value}")]
