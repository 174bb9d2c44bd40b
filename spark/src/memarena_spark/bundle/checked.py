"""Verifies a bundle for the site of the harness, and returns its facts and scores."""

from __future__ import annotations

from pathlib import Path

from memarena.site.certificates import Certificate, CheckedBundle
from memarena_dataset.safe_files import sha256_of

from memarena_spark.bundle import layout
from memarena_spark.bundle.derived import Facts
from memarena_spark.bundle.signing import allowed_signer, who_signed
from memarena_spark.bundle.statement import certifies
from memarena_spark.bundle.verify import Trust, verify


def check_bundle(bundle: Path, allowed: Path | None) -> CheckedBundle:
    """Verify a bundle with ``allowed`` signers; None: any key, or no signature.

    Raises SparkError if it is not a folder, or ssh-keygen is missing.
    """
    verification = verify(bundle, Trust(allowed=allowed, unsigned=allowed is None))
    facts = verification.facts
    return CheckedBundle(
        faults=tuple((fault.file, fault.message) for fault in verification.faults),
        certificate=_certificate(bundle, facts, allowed, verification.unchecked)
        if verification.passed and facts
        else None,
        facts=facts.run if facts else None,
        scored=facts.scored if facts else None,
    )


def _certificate(bundle: Path, facts: Facts, allowed: Path | None, unchecked: list[str]) -> Certificate:
    """Return the certificate of a bundle for reports. ``allowed``: file of allowed signers, or None."""
    state = facts.record.preflight.state
    statement, signature = bundle / layout.STATEMENT, bundle / layout.SIGNATURE
    signer = who_signed(statement, signature) if signature.is_file() else None
    gpu = state.gpu.model_dump(mode="json").get("name")
    return Certificate(
        certifies=tuple(name for name, on in certifies(facts.profile).items() if on),
        profile=f"{facts.profile.name} v{facts.profile.version}",
        result_class=facts.plan.result_class,
        node=state.identity.name,
        gpu=str(gpu) if gpu else None,
        key=signer or "",
        vouched_by=None if allowed is None else allowed_signer(statement, signature, allowed),
        statement_sha256=sha256_of(statement),
        fresh_world=facts.fresh is not None,
        unchecked=tuple(unchecked),
    )
