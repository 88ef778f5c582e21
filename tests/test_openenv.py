import subprocess
import sys


def test_a_worker_does_without_the_web_interface_of_openenv():
    code = (
        "from pairgen.clem.openenv import leave_out_openenv; leave_out_openenv(); import sys; "
        "from pairgen.clem import worker; from clemcore.clemgame import ClemGameEnv, GameMaster; "
        "print(sorted({'gradio', 'openenv'} & set(sys.modules)), isinstance(ClemGameEnv, type), GameMaster.__name__)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stdout == "[] True GameMaster\n", done.stderr[-2000:]


def test_what_is_imported_already_stays():
    code = (
        "import clemcore.clemgame as c; from pairgen.clem.openenv import leave_out_openenv as f; f(); "
        "from clemcore.clemgame.envs.openenv.client import ClemGameEnv; print(ClemGameEnv is c.ClemGameEnv)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stdout == "True\n", done.stderr[-2000:]
