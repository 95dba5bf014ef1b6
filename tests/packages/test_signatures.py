"""Ed25519: the vectors of RFC 8032, and nothing else is a signature."""

import pytest

from isorun.packages.signatures import Signature, fingerprint, is_signed_by, signed_content

# RFC 8032, section 7.1: public key, message, signature.
VECTORS = [
    (
        "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a",
        "",
        "e5564300c360ac729086e2cc806e828a84877f1eb8e5d974d873e065224901555fb8821590a33bacc61e39701cf9b46bd25bf5f0595bbe24655141438e7a100b",
    ),
    (
        "3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c",
        "72",
        "92a009a9f0d4cab8720e820b5f642540a2b27b5416503f8fb3762223ebdb69da085ac1e43e15996e458f3613d0f11d8c387b2eaeb4302aeeb00d291612bb0c00",
    ),
    (
        "fc51cd8e6218a1a38da47ed00230f0580816ed13ba3303ac5deb911548908025",
        "af82",
        "6291d657deec24024827e69c3abe01a30ce548a284743a445e3680d7db5ac3ac18ff9b538d16f290ae67f760984dc6594a7c15e9716ed28dc027beceea1ec40a",
    ),
]
ORDER = 2**252 + 27742317777372353535851937790883648493


@pytest.mark.parametrize(("key", "message", "signature"), VECTORS)
def test_the_vectors_of_the_rfc(key, message, signature):
    key, message, signature = map(bytes.fromhex, (key, message, signature))
    assert is_signed_by(key, message, signature)
    assert not is_signed_by(key, message + b"x", signature)
    assert not is_signed_by(key, message, signature[:-1] + bytes([signature[-1] ^ 1]))
    assert not is_signed_by(bytes([key[0] ^ 1]) + key[1:], message, signature)


def test_a_second_form_of_a_signature_is_none():
    """S and S + L would both fit, if nobody looked: then a signed package had two forms."""
    key, message, signature = map(bytes.fromhex, VECTORS[0])
    scalar = int.from_bytes(signature[32:], "little") + ORDER
    assert not is_signed_by(key, message, signature[:32] + scalar.to_bytes(32, "little"))


@pytest.mark.parametrize(
    "key", [bytes([1]) + bytes(31), bytes(32), b"\xff" * 32, bytes([0xEC]) + b"\xff" * 30 + b"\x7f"]
)
def test_keys_that_fit_every_message_are_refused(key):
    neutral = bytes([1]) + bytes(31)
    assert not is_signed_by(key, b"anything", neutral + bytes(32))


def test_what_is_signed_is_an_address_of_a_package():
    pytest.importorskip("cryptography")
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
    from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

    private = Ed25519PrivateKey.from_private_bytes(bytes(range(32)))
    key = private.public_key().public_bytes(Encoding.Raw, PublicFormat.Raw)
    made = Signature(key, private.sign(signed_content("sha256:ab")))
    assert made.is_valid_for("sha256:ab")
    assert not made.is_valid_for("sha256:ac")
    assert not Signature(key, private.sign(b"sha256:ab")).is_valid_for("sha256:ab")
    assert Signature.from_bytes(made.to_bytes()) == made
    assert fingerprint(key).startswith("SHA256:")
