"""Verifies BLS signatures over BLS12-381, as drand's networks make them, with py-ecc.

BLS12-381 has two groups of points, G1 and G2: a network has its keys in one of them and its signatures in the other.
"""

# ruff: noqa: E402  (py-ecc sets a recursion limit of 100,000, at which hostile JSON ends a process; it is set back)
from __future__ import annotations

import hashlib
import sys

_RECURSION_LIMIT = sys.getrecursionlimit()

from eth_typing import BLSPubkey, BLSSignature
from py_ecc.bls.ciphersuites import G2Basic
from py_ecc.bls.g2_primitives import pubkey_to_G1, signature_to_G2, subgroup_check
from py_ecc.bls.hash_to_curve import hash_to_G1
from py_ecc.fields import optimized_bls12_381_FQ12 as FQ12
from py_ecc.optimized_bls12_381.optimized_curve import G2, neg
from py_ecc.optimized_bls12_381.optimized_pairing import final_exponentiate, pairing

sys.setrecursionlimit(_RECURSION_LIMIT)

__all__ = ["G2Basic", "verify_on_g1", "verify_on_g2"]

_ON_G1 = b"BLS_SIG_BLS12381G1_XMD:SHA-256_SSWU_RO_NUL_"
"""Domain of signatures on G1 (RFC 9380); G2Basic has that of signatures on G2."""


def verify_on_g2(key: bytes, message: bytes, signature: bytes) -> bool:
    """Whether a signature on G2 (96 bytes) is that of a key on G1 (48 bytes)."""
    return bool(G2Basic.Verify(BLSPubkey(key), message, BLSSignature(signature)))


def verify_on_g1(key: bytes, message: bytes, signature: bytes) -> bool:
    """Whether a signature on G1 (48 bytes) is that of a key on G2 (96 bytes): e(signature, G2) = e(hash, key).

    Raises ValueError for bytes that are not a point.
    """
    point = pubkey_to_G1(BLSPubkey(signature))
    if not subgroup_check(point):
        return False
    message_point = hash_to_G1(message, _ON_G1, hashlib.sha256)  # type: ignore[arg-type]  # its annotation names an instance
    product = pairing(signature_to_G2(BLSSignature(key)), message_point, final_exponentiate=False)
    product *= pairing(neg(G2), point, final_exponentiate=False)
    return bool(final_exponentiate(product) == FQ12.one())
