"""The routes by which people change an experiment, and those for tokens."""

from collections.abc import Callable
from typing import Annotated, Any

from fastapi import FastAPI, HTTPException, Path, Request
from fastapi.responses import Response

from mfbandit._internal.limits import MAX_TOKEN_ID_LENGTH
from mfbandit.errors import Conflict, NotAllowed
from mfbandit.experiment import policy_from_record
from mfbandit.service import schemas
from mfbandit.service.answers import answer, key_in, stop_of
from mfbandit.service.middleware import ONLY_AGAIN
from mfbandit.service.schemas import ExperimentName
from mfbandit.store import DurableExperiment, Store


def add_controls(app: FastAPI, store: Store) -> None:
    """Add those that change an experiment."""

    def changed(name: str, control: Callable[[DurableExperiment], None]) -> Response:
        experiment = store.open(name)
        control(experiment)
        return answer(experiment.status())

    @app.post("/api/experiments/{name}/pause", response_model=schemas.Status, tags=["controls"])
    def pause(name: ExperimentName, body: schemas.Keyed | None = None) -> Response:
        """Hand out no plays until it is resumed; results are still recorded."""
        return changed(name, lambda experiment: experiment.pause(request_key=key_in(body)))

    @app.post("/api/experiments/{name}/resume", response_model=schemas.Status, tags=["controls"])
    def resume(name: ExperimentName, body: schemas.Keyed | None = None) -> Response:
        """Hand out plays again."""
        return changed(name, lambda experiment: experiment.resume(request_key=key_in(body)))

    @app.post("/api/experiments/{name}/capital", response_model=schemas.Status, tags=["controls"])
    def capital(name: ExperimentName, body: schemas.Capital) -> Response:
        """Change what all plays together may cost."""
        return changed(name, lambda experiment: experiment.set_capital(body.capital, request_key=body.request_key))

    @app.post("/api/experiments/{name}/biases", response_model=schemas.Status, tags=["controls"])
    def biases(name: ExperimentName, body: schemas.Biases) -> Response:
        """Assume other biases from now on."""
        return changed(name, lambda experiment: experiment.set_biases(body.biases, request_key=body.request_key))

    @app.post("/api/experiments/{name}/stop", response_model=schemas.Status, tags=["controls"])
    def stop(name: ExperimentName, body: schemas.StopBody) -> Response:
        """Stop by another rule from now on, or by none; an experiment that is decided goes on."""
        rule = stop_of(body.stop)
        return changed(name, lambda experiment: experiment.set_stop(rule, request_key=body.request_key))

    @app.post("/api/experiments/{name}/shares", response_model=schemas.Status, tags=["controls"])
    def shares(name: ExperimentName, body: schemas.SharesBody) -> Response:
        """Let arms have these shares of the plays at the highest fidelity from now on."""
        chosen = body.model_dump()
        return changed(name, lambda experiment: experiment.set_shares(**chosen))

    @app.post("/api/experiments/{name}/policy", response_model=schemas.Status, tags=["controls"])
    def policy(name: ExperimentName, body: schemas.PolicyBody) -> Response:
        """Let another policy pick plays from now on."""
        chosen = policy_from_record(body.policy.model_dump())
        return changed(name, lambda experiment: experiment.set_policy(chosen, request_key=body.request_key))

    @app.post("/api/experiments/{name}/arms", tags=["controls"])
    def add_arm(name: ExperimentName, body: schemas.NewArm) -> dict[str, int]:
        """Add an arm, which is tried before any other."""
        return {"arm": store.open(name).add_arm(body.label, request_key=body.request_key)}

    @app.post("/api/experiments/{name}/retire", response_model=schemas.Status, tags=["controls"])
    def retire(name: ExperimentName, body: schemas.OneArm) -> Response:
        """Stop asking for an arm."""
        return changed(name, lambda experiment: experiment.retire_arm(body.arm, request_key=body.request_key))

    @app.post("/api/experiments/{name}/restore", response_model=schemas.Status, tags=["controls"])
    def restore(name: ExperimentName, body: schemas.OneArm) -> Response:
        """Let an arm that was retired or set aside take part again."""
        return changed(name, lambda experiment: experiment.restore_arm(body.arm, request_key=body.request_key))

    @app.post("/api/experiments/{name}/forget", response_model=schemas.Status, tags=["controls"])
    def forget(name: ExperimentName, body: schemas.OneArm) -> Response:
        """Begin an arm anew: its results until now do not count any more."""
        return changed(name, lambda experiment: experiment.forget(body.arm, request_key=body.request_key))

    @app.post("/api/experiments/{name}/notes", response_model=schemas.Status, tags=["controls"])
    def note(name: ExperimentName, body: schemas.Note) -> Response:
        """Write a note into the log; maybe about an arm."""
        return changed(name, lambda experiment: experiment.note(body.text, arm=body.arm, request_key=body.request_key))


def add_token_routes(app: FastAPI, store: Store) -> None:
    """Add those for tokens."""

    @app.get("/api/tokens", tags=["tokens"])
    def tokens() -> dict[str, list[dict[str, Any]]]:
        """List the tokens: id, name, scope and when they were created; not the tokens themselves."""
        shown = ("id", "name", "scope", "created")
        return {"tokens": [{field: getattr(token, field) for field in shown} for token in store.tokens().values()]}

    @app.post("/api/tokens", status_code=201, tags=["tokens"])
    def create_token(body: schemas.NewToken, request: Request) -> dict[str, str]:
        """Create a token; it is shown once. From the first one on, every request needs one."""
        only_again = bool(request.scope.get(ONLY_AGAIN))
        try:
            made = store.create_token(body.name, body.scope, request_key=body.request_key, only_again=only_again)
        except (NotAllowed, Conflict) as error:
            if only_again:
                raise HTTPException(401, "a token is needed: Authorization: Bearer mfb_...") from error
            raise
        return {"token": made}

    @app.delete("/api/tokens/{token}", tags=["tokens"])
    def revoke_token(
        token: Annotated[str, Path(max_length=MAX_TOKEN_ID_LENGTH)], request_key: schemas.QueryKey = None
    ) -> dict[str, str]:
        """Revoke a token, by its id."""
        store.revoke_token(token, request_key=request_key)
        return {"revoked": token}
