"""The settings of the whole run, from a manifest's words to the plan's."""

from engine.plan.agents import choose_agent
from engine.plan.model import (
    AssistRule,
    Cluster,
    ExecutionMode,
    Holes,
    IsolationStrategy,
    Network,
    ReviewRules,
    Runtime,
    ServeRule,
    SharedHistory,
    WorkspaceRules,
)
from engine.spec.pipeline import Manifest
from engine.spec.runtime import (
    AssistSpec,
    DatabaseSpec,
    NetworkRules,
    RuntimeSpec,
    SandboxSpec,
    ServeSpec,
    SiteSpec,
    WorkspaceSpec,
)


def runtime_of(spec: RuntimeSpec, *, workers: int) -> Runtime:
    """The plan's runtime, with as many workers at once as were allowed."""
    minutes = spec.run_timeout_minutes
    return Runtime(
        max_concurrent_workers=workers,
        isolation=IsolationStrategy(spec.isolation_strategy),
        execution_mode=ExecutionMode(spec.execution_mode),
        site=str(spec.sites.get("default", "")),
        workspace_root=spec.workspace_root,
        stall_s=spec.stall_seconds,
        run_timeout_s=None if minutes is None else minutes * 60,
        require=tuple(spec.require),
        holes=_holes(spec.sandbox),
        auto_merge=spec.auto_merge,
        cleanup_on_complete=spec.cleanup_on_complete,
        target=spec.target,
        base=spec.base,
        branch_prefix=spec.branch_prefix,
        land_style=spec.land.style,
        history=shared_history_of(spec.database),
        clusters=clusters_of(spec),
    )


def clusters_of(spec: RuntimeSpec) -> tuple[Cluster, ...]:
    """Return the clusters that a manifest adds to the sites."""
    return tuple(
        Cluster(
            name=name,
            address=site.ray.address,
            resources=dict(site.ray.resources),
            env=site.ray.env,
            is_open=site.ray.unenforced,
            lease_s=(site.ray.lease_minutes or 0) * 60,
        )
        for name, site in spec.sites.items()
        if isinstance(site, SiteSpec)
    )


def shared_history_of(spec: DatabaseSpec) -> SharedHistory | None:
    """Return the history that a manifest shares; None where it shares none."""
    return SharedHistory(url_env=spec.url_env) if spec.strategy == "shared" else None


def _holes(spec: SandboxSpec) -> Holes:
    return Holes(
        network=_network(spec.network),
        env=spec.env,
        paths=spec.paths,
        has_docker=spec.docker,
        has_ssh_agent=spec.ssh_agent,
    )


def _network(spec: str | NetworkRules) -> Network:
    if isinstance(spec, NetworkRules):
        return Network(mode="allow", allow=spec.allow)
    return Network(mode=spec)


def workspace_of(spec: WorkspaceSpec) -> WorkspaceRules:
    """Return the rules for the workspaces of the plan."""
    return WorkspaceRules(
        include=spec.include,
        setup=spec.setup,
        teardown=spec.teardown,
        cwd=spec.cwd,
        paths=spec.paths,
        sparse_checkout=spec.sparse_checkout,
        ports=dict(spec.ports),
        serve=_serve(spec.serve) if spec.serve is not None else None,
    )


def _serve(spec: ServeSpec) -> ServeRule:
    return ServeRule(command=spec.command, port=spec.port, ready=spec.ready or "")


def review_of(manifest: Manifest) -> ReviewRules:
    """Return the rules of the plan by which conflicts get help."""
    spec = manifest.review
    return ReviewRules(
        regenerate=dict(spec.regenerate),
        format=dict(spec.format),
        assist=_assist(spec.assist, manifest) if spec.assist is not None else None,
    )


def _assist(spec: AssistSpec, manifest: Manifest) -> AssistRule:
    return AssistRule(
        agent=choose_agent(spec.agent, manifest.agents),
        requests=spec.budget.requests,
        usd=spec.budget.usd,
        seconds=spec.budget.minutes * 60,
    )
