"""The commands in the files of deploy/ are run as they stand, only with addresses of this machine."""

import os
import subprocess
import time
from contextlib import ExitStack

import httpx
import pytest

import mfbandit as mfb
from tests.support import deployment
from tests.support.deployment import FOLDER, compose, instructions, kubernetes
from tests.support.proxies import HOST, certificate, running
from tests.support.services import PROBLEM, create, not_measured, served, talking

FORWARDED = {"host": HOST, "x-forwarded-host": HOST, "x-forwarded-proto": "https"}


def options(words, *left_out):
    """The options of a serve command after the store, those left out that name addresses of other machines."""
    return [word for word in words[2:] if not word.startswith(left_out)]


@pytest.fixture
def stores(postgres_url):
    """A database with a token, as the first step of the files makes it; its address and the token."""
    words = deployment.mfbandit("token", "create", postgres_url, "--name", "me", "--scope", "admin")
    done = subprocess.run(words, check=True, capture_output=True, text=True, env=not_measured(), timeout=60)
    return postgres_url, done.stdout.strip()


@pytest.mark.postgres
@pytest.mark.nginx
@pytest.mark.slow
@pytest.mark.no_cover
def test_compose_two_services_behind_nginx_with_tls(tmp_path, stores):
    address, token = stores
    words = [word.replace("${DOMAIN:?the public name of the service}", HOST) for word in _compose_command()]
    assert words[0] == "serve"
    kept = [*options(words, "--host", "--port", "--trusted-proxy"), "--trusted-proxy=127.0.0.1"]
    pem, key = certificate(tmp_path)
    with ExitStack() as stack:
        pair = [stack.enter_context(served(address, options=kept)) for _ in range(2)]
        changes = {
            **{f"bandits-{number}:8000": f"127.0.0.1:{one.port}" for number, one in enumerate(pair, 1)},
            "/etc/nginx/tls/cert.pem": str(pem),
            "/etc/nginx/tls/key.pem": str(key),
        }
        port = stack.enter_context(running(tmp_path, (FOLDER / "nginx.conf").read_text(), "listen 8443 ssl", changes))
        client = stack.enter_context(
            httpx.Client(
                base_url=f"https://127.0.0.1:{port}",
                headers={"host": HOST, "authorization": f"Bearer {token}"},
                verify=False,  # noqa: S501 - the name in it is not this machine's
                timeout=30,
            )
        )
        create(client, "ads")
        told = [_play(client) for _ in range(10)]
        results = client.get("/api/experiments/ads").json()["results"]
        assert sum(results) == len(told)
        assert client.get("/metrics").status_code == 404  # not from outside
        assert client.get("/ready").headers["x-request-id"]
        page = client.get("/sign-in")
        assert "strict-transport-security" in page.headers
        signed = client.post("/sign-in", data={"token": token}, headers={"origin": f"https://{HOST}"})
        assert "__Host-mfbandit=" in signed.headers["set-cookie"]  # it knows that people reach it by TLS
        pair[0].kill()
        deadline = time.monotonic() + 10
        while (answer := client.get("/api/experiments/ads")).status_code != 200:
            assert answer.headers["content-type"] == PROBLEM or answer.status_code in (502, 504), answer.text
            assert time.monotonic() < deadline
        assert answer.json()["results"] == results


def _compose_command():
    return list(compose()["services"]["bandits-1"]["command"])


def _play(client):
    play = client.post("/api/experiments/ads/ask", json={}).json()["plays"][0]
    told = client.post("/api/experiments/ads/tell", json={"results": [{"play": play["id"], "reward": 0.5}]})
    assert told.json() == {"done": 1}
    return play["id"]


@pytest.mark.postgres
@pytest.mark.slow
@pytest.mark.no_cover
def test_kubernetes_a_pod_answers_its_probes_and_its_ingress(stores):
    address, token = stores
    (container,) = kubernetes()["StatefulSet", "bandits"]["spec"]["template"]["spec"]["containers"]
    words = container["args"]
    assert words[:2] == ["serve", "$(STORE)"]
    kept = [*options(words, "--host", "--port", "--trusted-proxy", "--peer-address"), "--trusted-proxy=127.0.0.1"]
    kept = [HOST.join(word.split("ads.example.org")) for word in kept]
    with served(address, options=kept) as service, talking(service.url) as pod:
        probe = container["readinessProbe"]["httpGet"]
        headers = {one["name"].lower(): one["value"] for one in probe["httpHeaders"]}
        assert pod.get(probe["path"], headers=headers).status_code == 200
        assert pod.get(probe["path"], headers={"host": "10.1.2.3:8000"}).status_code == 421
        found = pod.get("/api/experiments", headers={**FORWARDED, "authorization": f"Bearer {token}"})
        assert found.json() == {"experiments": [], "next": None}


@pytest.mark.slow
@pytest.mark.no_cover
def test_the_unit_s_command_serves_a_store(tmp_path):
    words = deployment.exec_start({"STORE": str(tmp_path / "store.db"), "OPTIONS": ""})
    assert words[:2] == ["serve", str(tmp_path / "store.db")]
    with served(tmp_path / "store.db", options=options(words, "--host", "--port", "127.0.0.1", "8000")) as service:
        assert httpx.get(f"{service.url}/ready").status_code == 200


@pytest.mark.slow
@pytest.mark.no_cover
def test_the_image_s_check_of_health_is_right(tmp_path):
    check = next(rest for keyword, rest in instructions() if keyword == "HEALTHCHECK")
    code = check.split('"')[-2]
    with served(tmp_path / "store.db") as service:
        here = code.replace("127.0.0.1:8000", f"127.0.0.1:{service.port}")
        subprocess.run([*deployment.mfbandit()[:1], "-c", here], check=True, timeout=30)
    done = subprocess.run([*deployment.mfbandit()[:1], "-c", here], check=False, capture_output=True, timeout=30)
    assert done.returncode != 0


@pytest.mark.slow
@pytest.mark.no_cover
@pytest.mark.skipif(bool(deployment.no_engine()), reason=deployment.no_engine() or "-")
def test_the_image_is_built_and_serves():
    """As a user without rights, on a root that cannot be written, with a volume for the store."""
    docker, name = deployment.engine(), f"mfbandit-test-{os.getpid()}"
    build = [docker, "build", "--file", str(FOLDER / "Dockerfile"), "--tag", name, str(deployment.ROOT)]
    subprocess.run(build, check=True, timeout=600)
    volume = [f"--volume={name}:/data", "--read-only", "--cap-drop=ALL", "--security-opt=no-new-privileges"]
    made = [docker, "run", "--rm", *volume, name, "token", "create", "/data/store.db"]
    token = subprocess.run(made, check=True, capture_output=True, text=True, timeout=60).stdout.strip()
    run = [docker, "run", "--detach", "--name", name, "--publish=127.0.0.1::8000", *volume, name]
    subprocess.run(run, check=True, capture_output=True, timeout=60)
    try:
        said = subprocess.run([docker, "port", name, "8000"], check=True, capture_output=True, text=True, timeout=60)
        with mfb.connect(f"http://{said.stdout.split()[0]}", token) as store:
            made_there = store.create("ads", mfb.UCB(), arms=2, fidelities=mfb.Fidelities([1], [0], mfb.Bounded()))
            made_there.tell(made_there.ask(), 1.0)
        stopped = subprocess.run([docker, "stop", name], check=False, timeout=60)
        assert stopped.returncode == 0
    finally:
        subprocess.run([docker, "rm", "--force", name], check=False, capture_output=True, timeout=60)
        subprocess.run([docker, "volume", "rm", name], check=False, capture_output=True, timeout=60)
        subprocess.run([docker, "image", "rm", name], check=False, capture_output=True, timeout=60)
