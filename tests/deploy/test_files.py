"""The files in deploy/ pass their linters and schemas, and give nothing more rights than it needs."""

import json
import shutil

import pytest

from tests.support import deployment
from tests.support.deployment import FOLDER, check, compose, instructions, kubernetes, tool
from tests.support.requirements import missing

MAX_EXPOSURE = 20  # by systemd-analyze security, of 100


class TestDockerfile:
    def test_hadolint_finds_nothing(self):
        check(tool("hadolint"), "--failure-threshold", "style", FOLDER / "Dockerfile")

    def test_it_ends_as_a_user_without_rights_who_has_a_volume(self):
        last = {keyword: rest for keyword, rest in instructions() if keyword not in ("RUN", "COPY")}
        number, _, group = last["USER"].partition(":")
        assert int(number) >= 10_000  # a number, as runAsNonRoot needs one
        assert int(group) >= 10_000
        assert last["VOLUME"] == last["WORKDIR"] == "/data"
        assert json.loads(last["CMD"])[:2] == ["serve", "/data/store.db"]
        assert "HEALTHCHECK" in last

    def test_what_is_built_is_not_in_what_runs(self):
        stages = [rest for keyword, rest in instructions() if keyword == "FROM"]
        assert len(stages) == 2
        copies = [rest for keyword, rest in instructions() if keyword == "COPY"]
        assert copies[-1].startswith("--from=build ")
        assert not [keyword for keyword, _ in instructions() if keyword == "ADD"]

    def test_it_copies_what_is_there_and_the_rest_is_not_sent(self):
        allowed = (FOLDER / "Dockerfile.dockerignore").read_text().splitlines()
        assert allowed[0] == "*"
        for _, rest in (one for one in instructions() if one[0] == "COPY" and not one[1].startswith("--from")):
            for source in rest.split()[:-1]:
                assert (deployment.ROOT / source).exists()
                assert f"!{source}" in allowed


def test_the_unit_is_right_and_shuts_much_out(tmp_path):
    program = shutil.which("systemd-analyze")
    if program is None:
        missing("systemd-analyze is not installed")
    text = (FOLDER / "mfbandit.service").read_text()
    unit = tmp_path / "mfbandit.service"
    unit.write_text(text.replace("/opt/mfbandit/bin/mfbandit", shutil.which("true") or "/bin/true"))
    assert check(program, "verify", "--man=no", unit) == ""
    check(program, "security", "--offline=yes", f"--threshold={MAX_EXPOSURE}", unit)


class TestCompose:
    def test_schema(self):
        check(tool("check-jsonschema"), "--builtin-schema", "vendor.compose-spec", FOLDER / "compose.yaml")

    @pytest.mark.parametrize("name", ["bandits-1", "bandits-2", "nginx"])
    def test_without_rights_on_a_root_that_cannot_be_written(self, name):
        service = compose()["services"][name]
        assert service["read_only"] is True
        assert service["cap_drop"] == ["ALL"]
        assert service["security_opt"] == ["no-new-privileges:true"]

    def test_only_nginx_can_be_reached_and_the_database_by_the_services_alone(self):
        services = compose()["services"]
        assert [name for name, one in services.items() if "ports" in one] == ["nginx"]
        assert compose()["networks"]["back"]["internal"] is True
        assert services["db"]["networks"] == ["back"]
        assert services["nginx"]["networks"] == ["front"]

    def test_proxies_are_trusted_from_the_front_network_alone(self):
        network = compose()["networks"]["front"]["ipam"]["config"][0]["subnet"]
        assert f"--trusted-proxy={network}" in compose()["services"]["bandits-1"]["command"]

    def test_no_password_is_written_down(self):
        for service in compose()["services"].values():
            assert all("PASSWORD" not in name or value.startswith("${") for name, value in _environment(service))


def _environment(service):
    return service.get("environment", {}).items()


class TestKubernetes:
    def test_schema(self):
        check(tool("kubernetes-validate"), "--strict", FOLDER / "kubernetes.yaml")

    def test_pods_have_no_rights(self):
        pod = kubernetes()["StatefulSet", "bandits"]["spec"]["template"]["spec"]
        (container,) = pod["containers"]
        user = dict(instructions())["USER"].partition(":")[0]  # the last one of the Dockerfile
        assert pod["securityContext"]["runAsNonRoot"] is True
        assert pod["securityContext"]["runAsUser"] == int(user)
        assert pod["automountServiceAccountToken"] is False
        security = container["securityContext"]
        assert security["readOnlyRootFilesystem"] is True
        assert security["allowPrivilegeEscalation"] is False
        assert security["capabilities"] == {"drop": ["ALL"]}
        assert "memory" in container["resources"]["limits"]

    def test_an_outage_of_the_database_ends_no_pod(self):
        (container,) = kubernetes()["StatefulSet", "bandits"]["spec"]["template"]["spec"]["containers"]
        assert "tcpSocket" in container["livenessProbe"]
        assert container["readinessProbe"]["httpGet"]["path"] == "/ready"

    def test_names_fit_together(self):
        found = kubernetes()
        spec = found["StatefulSet", "bandits"]["spec"]
        assert ("Service", spec["serviceName"]) in found
        labels = spec["template"]["metadata"]["labels"]
        for kind, name in (("Service", "bandits"), ("Service", "bandits-peers")):
            assert found[kind, name]["spec"]["selector"] == labels
        for kind in ("PodDisruptionBudget", "NetworkPolicy"):
            spec = found[kind, "bandits"]["spec"]
            assert spec.get("selector", spec.get("podSelector"))["matchLabels"] == labels
        (rule,) = found["Ingress", "bandits"]["spec"]["rules"]
        assert rule["http"]["paths"][0]["backend"]["service"]["name"] == "bandits"
        args = found["StatefulSet", "bandits"]["spec"]["template"]["spec"]["containers"][0]["args"]
        assert f"--allowed-host={rule['host']}" in args
        keys = found["Secret", "database"]["stringData"]
        assert set(keys) == {"address", "password"}
