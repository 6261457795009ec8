"""The part of KubeRay's RayCluster (ray.io/v1) that our example uses, as a schema.

A key that is not here is refused, so the example names none that nobody has looked up.
"""

from typing import Any


def _of(*required: str, **keys: Any) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": keys,
        "required": list(required),
        "additionalProperties": False,
    }


_TEXT, _COUNT = {"type": "string"}, {"type": "integer", "minimum": 0}
_TEXTS = {"type": "object", "additionalProperties": _TEXT}
_NAMED = _of("name", "value", name=_TEXT, value=_TEXT)
_CONTAINER = _of(
    *("name", "image"),
    name=_TEXT,
    image=_TEXT,
    env={"type": "array", "items": _NAMED},
    resources=_of(limits=_TEXTS, requests=_TEXTS),
    securityContext=_of(seccompProfile=_of("type", type={"enum": ["Unconfined"]})),
)
_POD = _of(
    "spec",
    spec=_of(
        "containers",
        terminationGracePeriodSeconds=_COUNT,
        containers={"type": "array", "items": _CONTAINER, "minItems": 1},
    ),
)
_WORKERS = _of(
    *("groupName", "template"),
    groupName=_TEXT,
    replicas=_COUNT,
    minReplicas=_COUNT,
    maxReplicas=_COUNT,
    rayStartParams=_TEXTS,
    template=_POD,
)
RAY_CLUSTER = _of(
    *("apiVersion", "kind", "metadata", "spec"),
    apiVersion={"const": "ray.io/v1"},
    kind={"const": "RayCluster"},
    metadata=_of("name", name=_TEXT),
    spec=_of(
        *("headGroupSpec", "authOptions"),
        rayVersion=_TEXT,
        authOptions=_of("mode", mode={"enum": ["token"]}),
        enableInTreeAutoscaling={"type": "boolean"},
        headGroupSpec=_of("template", rayStartParams=_TEXTS, template=_POD),
        workerGroupSpecs={"type": "array", "items": _WORKERS},
    ),
)
