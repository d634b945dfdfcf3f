"""The image and the composition of services: whatever they name is there, and every command takes its options.

No Docker engine builds them here; what they run is looked at instead.
"""

import configparser
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import kubernetes_validate
import pytest
import typer
import yaml
from dagster._cli import ENV_PREFIX, create_dagster_cli
from dagster._cli import cli as dagster_cli
from dagster._core.remote_origin import GrpcServerCodeLocationOrigin
from dagster._core.workspace.load import location_origins_from_yaml_paths
from dagster._daemon.cli import create_dagster_daemon_cli
from dagster_webserver.cli import create_dagster_webserver_cli

from health_assets.cli.commands import app
from health_assets.core.settings import Settings
from health_assets_tests.support.projects import REPOSITORY

DOCKERFILE = (REPOSITORY / "Dockerfile").read_text(encoding="utf-8")
DEPLOY = REPOSITORY / "deploy"
DATA, STORAGE = "/srv/health-assets/data", "/srv/dagster/storage"
"""Where the image writes: the history of the pages, and what Dagster's steps print."""
WORKSPACES = ("code-server.yaml", "/etc/health-assets/workspace.yaml")
"""Where the image and the units have the project's `deploy/workspace.yaml`."""
AS_WRITTEN = (REPOSITORY / "compose.yaml").read_text(encoding="utf-8")
COMPOSE = yaml.safe_load(re.sub(r"\$\{\w+:-([^}]*)\}", r"\1", AS_WRITTEN))
"""With the defaults of its variables."""
OWN = {name: service for name, service in COMPOSE["services"].items() if name != "postgres"}
COMMANDS: dict[str, Any] = {  # typer brings a click of its own
    "health-assets": typer.main.get_command(app),
    "dagster": create_dagster_cli(),
    "dagster-webserver": create_dagster_webserver_cli(),
    "dagster-daemon": create_dagster_daemon_cli(),
}


LOG_FORMATS = {
    "HEALTH_LOG_FORMAT", "DAGSTER_WEBSERVER_LOG_FORMAT", "DAGSTER_CLI_API_GRPC_LOG_FORMAT",
    "DAGSTER_CLI_CODE_SERVER_START_LOG_FORMAT",
}  # fmt: skip


def take(words: list[str]) -> Any:
    """Parse a command line without running it; an unknown command or option raises."""
    words = [str(DEPLOY / "workspace.yaml") if word in WORKSPACES else word for word in words]
    context = COMMANDS[words[0]].make_context(words[0], list(words[1:]))
    while hasattr(context.command, "resolve_command"):
        name, command, rest = context.command.resolve_command(context, [*context._protected_args, *context.args])
        assert command is not None
        context = command.make_context(name, list(rest), parent=context)
    return context


def test_the_services_are_the_processes_of_an_installation_and_postgresql_whose_tables_are_made_first() -> None:
    assert {name: service["command"][:2] for name, service in OWN.items()} == {
        "migrate": ["health-assets", "migrate"],
        "code-server": ["dagster", "code-server"],
        "webserver": ["dagster-webserver", "--host"],
        "daemon": ["dagster-daemon", "run"],
        "endpoint": ["health-assets", "serve"],
        "collector": ["health-assets", "collect"],
    }
    assert OWN["migrate"]["depends_on"] == {"postgres": {"condition": "service_healthy"}}
    for name in OWN.keys() - {"migrate"}:
        assert OWN[name]["depends_on"] == {"migrate": {"condition": "service_completed_successfully"}}


@pytest.mark.parametrize("name", OWN)
def test_every_command_and_option_of_a_service_is_there(name: str) -> None:
    service = OWN[name]
    taken = take(service["command"])
    if "ports" in service:
        assert taken.params["host"] == "0.0.0.0"
        assert service["ports"] == [f"127.0.0.1:{taken.params['port']}:{taken.params['port']}"]
        assert str(taken.params["port"]) in re.findall(r"^EXPOSE (.*)$", DOCKERFILE, re.M)[0].split()
        assert f"http://127.0.0.1:{taken.params['port']}/" in service["healthcheck"]["test"][-1]
    asked = {"daemon": "liveness-check", "code-server": "grpc-health-check"}
    if name in asked:
        assert service["healthcheck"]["test"][0] == "CMD"
        assert take(service["healthcheck"]["test"][1:]).info_name == asked[name]


def test_two_variables_make_every_service_log_json(monkeypatch: pytest.MonkeyPatch) -> None:
    as_json = yaml.safe_load(re.sub(r"\$\{(HEALTH|DAGSTER)_LOG_FORMAT:-\w+\}", "json", AS_WRITTEN))
    environment = as_json["x-health"]["environment"]
    assert {environment[name] for name in LOG_FORMATS} == {"json"}
    assert take(as_json["services"]["daemon"]["command"]).params["log_format"] == "json"
    for name in LOG_FORMATS:
        monkeypatch.setenv(name, "json")
    assert Settings().log_format == "json"
    server = create_dagster_webserver_cli().make_context("x", [], auto_envvar_prefix="DAGSTER_WEBSERVER")
    assert server.params["log_format"] == "json"
    for group, word in (("api", "grpc"), ("code-server", "start")):
        with dagster_cli.make_context("x", [group, word], auto_envvar_prefix=ENV_PREFIX) as context:
            name, command, rest = context.command.resolve_command(context, [group, word])
            with command.make_context(name, [word], parent=context) as above:
                _, own, rest = above.command.resolve_command(above, [word])
                assert own.make_context(word, rest, parent=above).params["log_format"] == "json"


def test_an_unknown_command_or_option_would_be_noticed() -> None:
    for words in (["health-assets", "served"], ["dagster-daemon", "run", "--nonsense"], ["dagster-webserver", "-x"]):
        with pytest.raises(Exception, match=r"No such (command|option)"):
            take(words)


@pytest.mark.parametrize("name", [name for name in COMPOSE["services"] if name != "migrate"])
def test_every_service_that_stays_up_tells_its_health_and_starts_again(name: str) -> None:
    service = COMPOSE["services"][name]
    assert {"test", "interval", "timeout", "retries"} <= service["healthcheck"].keys()
    assert service["restart"] == "unless-stopped"


def test_every_setting_is_one_of_ours_or_of_dagster_and_the_database() -> None:
    named = {*re.findall(r"HEALTH_[A-Z_]+", AS_WRITTEN + DOCKERFILE)}
    of_the_composition = {"HEALTH_LOGS", "HEALTH_CONFIG"}  # folders of the host
    assert named - of_the_composition <= {f"HEALTH_{name.upper()}" for name in Settings.model_fields}
    environment = COMPOSE["x-health"]["environment"]
    assert environment.keys() - LOG_FORMATS == {
        "HEALTH_RAW", "HEALTH_WAREHOUSE", "DAGSTER_PG_URL", "PGPASSWORD", "DAGSTER_CODE_SERVER_HOST",
    }  # fmt: skip
    stored = yaml.safe_load((REPOSITORY / "docs" / "dagster-postgres.yaml").read_text(encoding="utf-8"))
    for storage in ("run_storage", "event_log_storage", "schedule_storage"):
        assert stored[storage]["config"] == {"postgres_url": {"env": "DAGSTER_PG_URL"}}


def test_every_volume_and_path_is_declared_and_there() -> None:
    for service in COMPOSE["services"].values():
        for volume in service.get("volumes", []):
            source, target = volume.split(":")[:2]
            is_declared = source in COMPOSE["volumes"] or source in ("./data/raw", "./config")
            assert is_declared or (REPOSITORY / source).is_file(), source
            assert target.startswith("/")
    target = f"{_environment_of_the_image()['DAGSTER_HOME']}/storage"
    assert f"dagster:{target}" in COMPOSE["x-health"]["volumes"]
    assert f"mkdir -p {target}" in DOCKERFILE, "a volume takes its owner from the image's folder"


@pytest.mark.parametrize("name", OWN)
def test_a_service_can_write_into_its_volumes_alone_and_has_no_privileges(name: str) -> None:
    service = OWN[name]
    assert service["read_only"] is True
    assert service["cap_drop"] == ["ALL"] and service["security_opt"] == ["no-new-privileges:true"]
    targets = {volume.split(":")[1] for volume in service["volumes"]}
    assert ("/tmp" in targets) != (service["tmpfs"] == ["/tmp"])
    if name == "endpoint":
        assert DATA in targets and f"mkdir -p {STORAGE} {DATA}" in DOCKERFILE


def test_the_databases_of_the_urls_are_those_that_the_server_makes() -> None:
    environment = COMPOSE["x-health"]["environment"]
    server = COMPOSE["services"]["postgres"]["environment"]
    databases = {environment[name].rpartition("/")[2] for name in ("HEALTH_WAREHOUSE", "DAGSTER_PG_URL")}
    made = re.findall(r"CREATE DATABASE (\w+);", (REPOSITORY / "docker" / "databases.sql").read_text(encoding="utf-8"))
    assert databases == {server["POSTGRES_DB"], *made}
    assert f"//{server['POSTGRES_USER']}@postgres/" in environment["HEALTH_WAREHOUSE"]


def test_the_image_is_built_from_files_that_are_there_with_extras_that_are_there_and_runs_as_nobody_special() -> None:
    last_stage = DOCKERFILE.rpartition("\nFROM ")[2]
    users = re.findall(r"^USER (\w+)$", last_stage, re.M)
    assert users == ["health"] and "useradd --uid 10001" in last_stage
    included = {line[1:] for line in (REPOSITORY / ".dockerignore").read_text().splitlines() if line.startswith("!")}
    copied = {
        name
        for words in re.findall(r"^COPY (?!--from)(?:--chown=\w+ )?(.*)$", DOCKERFILE, re.M)
        for name in (Path(word).as_posix() for word in words.split()[:-1])
    }
    assert copied == included
    assert all((REPOSITORY / name).exists() for name in copied)
    assert f"COPY deploy/workspace.yaml ./{WORKSPACES[0]}\n" in last_stage
    assert not re.search(r"/python3\.\d+/", DOCKERFILE), "BASE may name another Python"
    [extras] = re.findall(r"^ARG EXTRAS=(.*)$", DOCKERFILE, re.M)
    project = (REPOSITORY / "pyproject.toml").read_text(encoding="utf-8")
    assert all(re.search(rf"^{extra} = \[", project, re.M) for extra in extras.split(","))


def _environment_of_the_image() -> dict[str, Any]:
    return dict(re.findall(r"([A-Z_]+)=(\S+)", DOCKERFILE.partition("\nENV ")[2].partition("\n\n")[0]))


def test_the_license_is_the_one_that_the_package_names() -> None:
    text = (REPOSITORY / "LICENSE").read_text(encoding="utf-8")
    assert "Apache License" in text and "Version 2.0, January 2004" in text
    assert "END OF TERMS AND CONDITIONS" in text
    assert 'license = "Apache-2.0"' in (REPOSITORY / "pyproject.toml").read_text(encoding="utf-8")


# -- systemd and Kubernetes ----------------------------------------------------------------------------------------------

UNITS = sorted((DEPLOY / "systemd").glob("*.service"))
MANIFESTS = list(yaml.safe_load_all((DEPLOY / "kubernetes" / "health-assets.yaml").read_text(encoding="utf-8")))
PODS = {
    each["metadata"]["name"]: each["spec"]["template"]["spec"]
    for each in MANIFESTS
    if "template" in each.get("spec", {})
}
STATED = ("DAGSTER_HOME", "DAGSTER_CODE_SERVER_HOST", "DAGSTER_PG_URL", "PGPASSWORD")


def unit(path: Path) -> configparser.ConfigParser:
    parser = configparser.ConfigParser(interpolation=None, strict=True)
    parser.optionxform = str  # type: ignore[assignment,method-assign]
    parser.read(path, encoding="utf-8")
    return parser


def assert_settings(names: Iterable[str]) -> None:
    assert {*names} - {*STATED} <= {f"HEALTH_{name.upper()}" for name in Settings.model_fields}


@pytest.mark.parametrize("path", UNITS, ids=lambda path: path.stem)
def test_every_unit_starts_a_command_that_takes_its_options_with_settings_that_are_there(path: Path) -> None:
    service = unit(path)["Service"]
    program, *options = service["ExecStart"].split()
    take([Path(program).name, *options])
    assert service["EnvironmentFile"] == "/etc/health-assets/health-assets.env"
    after = {name for name in unit(path)["Unit"]["After"].split() if name.startswith("health-assets")}
    assert after <= {known.name for known in UNITS}
    lines = (DEPLOY / "systemd" / "health-assets.env").read_text(encoding="utf-8").splitlines()
    assert_settings(line.partition("=")[0] for line in lines if not line.startswith("#"))


@pytest.mark.parametrize("name", PODS)
def test_every_pod_runs_a_command_that_takes_its_options_and_is_asked_whether_it_is_well(name: str) -> None:
    [container] = PODS[name]["containers"]
    taken = take(container["command"])
    ports = [port["containerPort"] for port in container.get("ports", [])]
    assert ports == ([taken.params["port"]] if "port" in taken.params else [])
    probe = container.get("readinessProbe") or container.get("livenessProbe")
    if name != "migrate":
        assert probe["httpGet"]["port"] in ports if "httpGet" in probe else take(probe["exec"]["command"])
    [settings] = [each["data"] for each in MANIFESTS if each["kind"] == "ConfigMap"]
    assert_settings(settings)
    assert PODS[name]["securityContext"]["runAsUser"] == int(re.findall(r"--uid (\d+)", DOCKERFILE)[0])


@pytest.mark.parametrize("version", ["1.25", "1.37"])
def test_the_manifests_are_valid_for_old_and_new_versions_of_kubernetes(version: str) -> None:
    for manifest in MANIFESTS:
        kubernetes_validate.validate(manifest, version, strict=True)


def test_a_manifest_with_an_unknown_field_would_be_noticed() -> None:
    [service] = [each for each in MANIFESTS if each["metadata"]["name"] == "endpoint" and each["kind"] == "Service"]
    with pytest.raises(kubernetes_validate.ValidationError):
        kubernetes_validate.validate(service | {"specs": {}}, "1.37", strict=True)


@pytest.mark.parametrize("name", PODS)
def test_a_pod_can_write_into_its_volumes_alone_and_has_no_privileges(name: str) -> None:
    """What the restricted Pod Security Standard asks for, and a root that is read-only."""
    pod = PODS[name]
    [container] = pod["containers"]
    assert pod["automountServiceAccountToken"] is False
    assert pod["securityContext"] == {
        "runAsNonRoot": True, "runAsUser": 10001, "fsGroup": 10001, "seccompProfile": {"type": "RuntimeDefault"},
    }  # fmt: skip
    assert container["securityContext"] == {
        "allowPrivilegeEscalation": False, "readOnlyRootFilesystem": True, "capabilities": {"drop": ["ALL"]},
    }  # fmt: skip
    mounted = {mount["mountPath"]: mount["name"] for mount in container["volumeMounts"]}
    assert mounted.keys() == {
        "/tmp",
        *([STORAGE] if container["command"][0].startswith("dagster") else []),
        *([DATA] if name == "endpoint" else []),
    }
    assert [{"name": name, "emptyDir": {}} for name in mounted.values()] == pod["volumes"]
    assert container["resources"].keys() == {"requests", "limits"}


def test_no_pod_has_the_password_of_a_role_that_is_not_its_own() -> None:
    text = (DEPLOY / "kubernetes" / "health-assets.yaml").read_text(encoding="utf-8")
    made = dict(re.findall(r"^#   kubectl create secret generic (\S+) --from-literal=(\w+)=", text, re.M))
    assert_settings(made.values())
    has = {
        name: {source["secretRef"]["name"] for source in pod["containers"][0]["envFrom"] if "secretRef" in source}
        for name, pod in PODS.items()
    }
    assert has == {
        "migrate": {"health-owner"}, "code-server": {"health-writer", "dagster"}, "daemon": {"dagster"},
        "webserver": {"dagster"}, "endpoint": {"health-reader"},
    }  # fmt: skip
    assert set().union(*has.values()) == made.keys()


def test_every_service_of_kubernetes_leads_to_a_port_of_its_pod() -> None:
    for service in (each for each in MANIFESTS if each["kind"] == "Service"):
        [container] = PODS[service["spec"]["selector"]["app"]]["containers"]
        assert service["spec"]["ports"] == [{"port": port["containerPort"]} for port in container["ports"]]


def test_the_assets_are_loaded_from_the_code_server_that_the_examples_start(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DAGSTER_CODE_SERVER_HOST", "code-server")
    [origin] = location_origins_from_yaml_paths([str(DEPLOY / "workspace.yaml")])
    assert isinstance(origin, GrpcServerCodeLocationOrigin)
    started = [OWN["code-server"]["command"], PODS["code-server"]["containers"][0]["command"]]
    started.append(unit(DEPLOY / "systemd" / "health-assets-code-server.service")["Service"]["ExecStart"].split())
    for _, *options in started:
        taken = take(["dagster", *options])
        assert (taken.params["port"], taken.params["location_name"]) == (origin.port, origin.location_name)
    assert origin.host in OWN and origin.host in PODS
