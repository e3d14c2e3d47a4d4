"""Makes packages/proto/vectors/tuf-v1.json with python-tuf, the reference implementation of The Update Framework.

    PYTHONPATH=.toolchain/tuf python3 packages/proto/test/tuf_vectors.py [--check]

Each case is what an edge has stored, the repository that it is shown, and the verdict that it must reach. python-tuf's
own client runs on every case and must agree; where this project differs on purpose, the case says why. Keys come
from fixed seeds, so the same file is made each time: `--check` compares it with the committed one.
"""

import copy
import hashlib
import json
import sys
import tempfile
from datetime import datetime, timedelta, timezone
from pathlib import Path

import tuf
from cryptography.hazmat.primitives.asymmetric import ec, ed25519
from securesystemslib.formats import encode_canonical
from securesystemslib.signer import CryptoSigner, SSlibKey
from tuf.api.exceptions import DownloadError, DownloadHTTPError, RepositoryError
from tuf.api.metadata import Metadata, MetaFile, Root, Snapshot, TargetFile, Targets, Timestamp
from tuf.api.serialization.json import JSONSerializer
from tuf.ngclient import FetcherInterface, Updater

OUT = Path(__file__).parent.parent / "vectors" / "tuf-v1.json"
NOW = datetime(2026, 11, 20, 12, 0, 0, tzinfo=timezone.utc)
DAY = timedelta(days=1)
ROLES = ["root", "timestamp", "snapshot", "targets"]
PROGRAM = b"the program of release 0.2.0\n"
PATH = "bootfarm-edge/0.2.0/x86_64/bootfarm-edge"


def signer(name, number=0):
    seed = hashlib.sha256(f"bootfarm tuf vectors {name} {number}".encode()).digest()
    return CryptoSigner(ed25519.Ed25519PrivateKey.from_private_bytes(seed))


KEYS = {role: [signer(role, number) for number in range(4)] for role in [*ROLES, "thief"]}


class Repository:
    """The newest document of each role, and every file that was published."""

    def __init__(self, consistent=True, described=True, shared=False):
        self.described = described
        self.files = {}
        self.signers = {role: KEYS[role][:1] for role in ROLES}
        self.signers["root"] = KEYS["root"][:2]
        if shared:
            for role in ("timestamp", "snapshot", "targets"):
                self.signers[role] = KEYS["timestamp"][:1]
        self.root = Root(expires=NOW + 365 * DAY, consistent_snapshot=consistent)
        for role in ROLES:
            for one in self.signers[role]:
                self.root.add_key(one.public_key, role)
        self.root.roles["root"].threshold = 2
        self.targets = Targets(expires=NOW + 90 * DAY)
        self.snapshot = Snapshot(expires=NOW + 7 * DAY)
        self.timestamp = Timestamp(expires=NOW + DAY)
        self.add_target()
        self.publish_root()
        self.publish()

    def add_target(self, path=PATH, content=PROGRAM):
        self.targets.targets[path] = TargetFile.from_data(path, content, ["sha256"])

    def sign(self, signed, signers):
        document = Metadata(copy.deepcopy(signed))
        for one in signers:
            document.sign(one, append=True)
        return document.to_bytes(JSONSerializer(compact=True))

    def name(self, role, version):
        return f"{version}.{role}.json" if self.root.consistent_snapshot else f"{role}.json"

    def publish_root(self, signers=None):
        self.files[f"{self.root.version}.root.json"] = self.sign(self.root, signers or self.signers["root"])

    def publish(self, only=ROLES[1:], signers=None):
        signers = signers or self.signers
        if "targets" in only:
            content = self.sign(self.targets, signers["targets"])
            self.files[self.name("targets", self.targets.version)] = content
            self.snapshot.meta["targets.json"] = self.meta(self.targets.version, content)
        if "snapshot" in only:
            content = self.sign(self.snapshot, signers["snapshot"])
            self.files[self.name("snapshot", self.snapshot.version)] = content
            self.timestamp.snapshot_meta = self.meta(self.snapshot.version, content)
        if "timestamp" in only:
            self.files["timestamp.json"] = self.sign(self.timestamp, signers["timestamp"])

    def meta(self, version, content):
        return MetaFile.from_data(version, content, ["sha256"]) if self.described else MetaFile(version)

    def release(self):
        for one in (self.targets, self.snapshot, self.timestamp):
            one.version += 1
        self.publish()
        return self

    def rotate(self, role, signers, threshold=1):
        """The next root has other keys of a role; it is not published yet."""
        for key_id in list(self.root.roles[role].keyids):
            self.root.revoke_key(key_id, role)
        for one in signers:
            self.root.add_key(one.public_key, role)
        self.root.roles[role].threshold = threshold
        self.signers[role] = signers

    def stored(self):
        """What a client has after an update."""
        return {
            "root": self.files[f"{self.root.version}.root.json"],
            "timestamp": self.files["timestamp.json"],
            "snapshot": self.files[self.name("snapshot", self.snapshot.version)],
            "targets": self.files[self.name("targets", self.targets.version)],
        }

    def at_root(self, version=1):
        return {"root": self.files[f"{version}.root.json"]}


CASES = []


def case(name, attack, verdict, repository, stored, now=NOW, differs=None, after=None):
    """`after`: versions that the client keeps, where that is the point."""
    files = dict(repository.files if isinstance(repository, Repository) else repository)
    CASES.append(
        {
            "name": name,
            "attack": attack,
            "verdict": verdict,
            "now": now,
            "stored": stored,
            "files": files,
            "differs": differs,
            "after": after,
        }
    )


def resigned(content, signers, change):
    """The same document with `change` applied to its JSON, signed without python-tuf's own checks."""
    whole = json.loads(content)
    change(whole["signed"])
    return raw_signed(whole["signed"], signers)


def raw_signed(signed, signers):
    canonical = encode_canonical(signed).encode()
    signatures = [{"keyid": one.public_key.keyid, "sig": one.sign(canonical).signature} for one in signers]
    return json.dumps({"signatures": signatures, "signed": signed}, sort_keys=True, separators=(",", ":")).encode()


def accepted_cases():
    first = Repository()
    case("the first update from the installed root", None, "done", first, first.at_root())
    case("nothing is new", None, "done", first, first.stored())
    before = Repository()
    stored = before.stored()
    case("a new release", None, "done", before.release(), stored, after={"timestamp": 2, "snapshot": 2, "targets": 2})
    plain = Repository(consistent=False)
    stored = plain.stored()
    case("without consistent snapshots", None, "done", plain.release(), stored)
    case("metadata that state no sizes and hashes", None, "done", Repository(described=False).release(), stored_of(False))
    chain = Repository()
    stored = chain.stored()
    for version in (2, 3):
        chain.root.version = version
        old = chain.signers["root"]
        chain.rotate("root", KEYS["root"][version - 1 : version + 1], 2)
        chain.publish_root(list({one.public_key.keyid: one for one in old + chain.signers["root"]}.values()))
    case("root keys rotate twice", None, "done", chain, stored, after={"root": 3, "timestamp": 1})
    unicode = Repository()
    unicode.targets.unrecognized_fields["x-note \"\\\u00e9\U0001f600\n"] = {"b": [None, True, -1], "a": {"\u00fc": ""}}
    unicode.publish()
    case("unknown fields with characters beyond ASCII are signed as well", None, "done", unicode, unicode.at_root())
    broken_off = Repository()
    stored = broken_off.stored()
    broken_off.release()
    stored["timestamp"] = broken_off.files["timestamp.json"]
    case("the last update ended after its timestamp", None, "done", broken_off, stored)
    spare = Repository()
    elliptic = CryptoSigner(ec.derive_private_key(7, ec.SECP256R1()))
    spare.root.add_key(elliptic.public_key, "timestamp")
    spare.publish_root()
    case("a key of another kind beside the one that signs", None, "done", spare, spare.at_root())
    empty = Repository()
    whole = json.loads(empty.files["timestamp.json"])
    whole["signatures"].append({"keyid": KEYS["thief"][0].public_key.keyid, "sig": ""})
    empty.files["timestamp.json"] = json.dumps(whole, indent=1).encode()
    case("a signature that is still missing does not count", None, "done", empty, empty.at_root())


def stored_of(described):
    return Repository(described=described).stored()


def freeze_cases():
    for role, after in (("timestamp", DAY), ("snapshot", 7 * DAY), ("targets", 90 * DAY)):
        frozen = Repository()
        later = {"timestamp": frozen.timestamp, "snapshot": frozen.snapshot, "targets": frozen.targets}
        for name, one in later.items():
            one.expires = NOW + after if name == role else NOW + 400 * DAY
        frozen.root.expires = NOW + 400 * DAY
        frozen.publish_root()
        frozen.publish()
        end = NOW + after
        case(f"a {role} is shown after it expired", "freeze", "Expired", frozen, frozen.at_root(), now=end)
        case(f"a {role} is shown again after it expired", "freeze", "Expired", frozen, frozen.stored(), now=end)
        case(f"a {role} is valid until its last second", None, "done", frozen, frozen.at_root(), now=end - DAY / 86400)
    stale = Repository()
    stored = stale.stored()
    stale.release()
    stale.timestamp.expires = NOW
    stale.publish(["timestamp"])
    case("a newer timestamp that has expired is not kept", "freeze", "Expired", stale, stored, after={"timestamp": 1})
    past = Repository()
    stored = past.stored()
    past.snapshot.expires = NOW
    past.release()
    case("a newer snapshot that has expired is not kept", "freeze", "Expired", past, stored, after={"snapshot": 1})


def root_cases():
    old = Repository()
    for one in (old.timestamp, old.snapshot, old.targets):
        one.expires = NOW + 700 * DAY
    old.publish()
    case("the root has expired and there is no newer one", "expired_root", "Expired", old, old.at_root(), now=NOW + 365 * DAY)
    renewed = Repository()
    renewed.root.version = 2
    renewed.root.expires = NOW + 800 * DAY
    renewed.publish_root()
    for one in (renewed.timestamp, renewed.snapshot, renewed.targets):
        one.expires = NOW + 700 * DAY
    renewed.publish()
    case("an expired root leads to a newer one", None, "done", renewed, renewed.at_root(1), now=NOW + 500 * DAY)
    dead = Repository()
    for one in (dead.timestamp, dead.snapshot, dead.targets):
        one.expires = NOW + 700 * DAY
    dead.publish()
    dead.root.version = 2
    dead.publish_root()
    end = NOW + 366 * DAY
    case("the newest root has expired", "expired_root", "Expired", dead, dead.at_root(1), now=end, after={"root": 2})
    for name, version in (("again", 1), ("two versions further", 3)):
        jump = Repository()
        stored = jump.at_root()
        jump.root.version = version
        content = jump.sign(jump.root, jump.signers["root"])
        jump.files["2.root.json"] = content
        case(f"in place of root 2 comes root {version}", "rollback", "RolledBack", jump, stored)
    few = Repository()
    stored = few.at_root()
    few.root.version = 2
    few.publish_root(few.signers["root"][:1])
    case("one of two root keys signs the next root", "stolen_online_key", "Unsigned", few, stored, after={"root": 1})
    seized = Repository()
    stored = seized.at_root()
    seized.root.version = 2
    seized.rotate("root", KEYS["thief"][:2], 2)
    seized.publish_root(KEYS["thief"][:2])
    case("a root that only its own new keys sign", "arbitrary_file", "Unsigned", seized, stored)
    unready = Repository()
    stored = unready.at_root()
    unready.root.version = 2
    unready.rotate("root", KEYS["root"][2:4], 2)
    unready.publish_root(KEYS["root"][:2])
    case("a root that only its former keys sign", "arbitrary_file", "Unsigned", unready, stored)
    online = Repository()
    stored = online.at_root()
    online.root.version = 2
    online.publish_root(KEYS["timestamp"][:1] + KEYS["snapshot"][:1])
    case("a root signed by the online keys", "stolen_online_key", "Unsigned", online, stored)
    self_made = Repository()
    lonely = {"root": self_made.sign(self_made.root, KEYS["thief"][:2])}
    case("the stored root is not signed by itself", "arbitrary_file", "Unsigned", self_made, lonely)


def rollback_cases():
    fresh = Repository()
    old = fresh.files["timestamp.json"]
    fresh.release()
    stored = fresh.stored()
    shown = {**fresh.files, "timestamp.json": old}
    case("an older timestamp", "rollback", "RolledBack", shown, stored, after={"timestamp": 2})
    back = Repository().release()
    stored = back.stored()
    back.timestamp.version += 1
    back.snapshot.version -= 1
    back.publish(["snapshot", "timestamp"])
    case("a newer timestamp that names an older snapshot", "rollback", "RolledBack", back, stored, after={"timestamp": 2})
    for described in (True, False):
        swap = Repository(described=described).release()
        stored = swap.stored()
        swap.timestamp.version += 1
        swap.snapshot.version += 1
        swap.targets.version -= 1
        swap.publish()
        name = "with" if described else "without"
        case(f"a newer snapshot {name} hashes that names older targets", "rollback", "RolledBack", swap, stored)
    lost = Repository()
    lost.snapshot.meta["other.json"] = MetaFile(1)
    lost.publish(["snapshot", "timestamp"])
    stored = lost.stored()
    del lost.snapshot.meta["other.json"]
    lost.release()
    case("a newer snapshot no longer lists a file", "rollback", "RolledBack", lost, stored)
    lapsed = Repository().release()
    stored = lapsed.stored()
    lapsed.timestamp.version += 1
    lapsed.snapshot.version += 1
    lapsed.targets.version -= 1
    lapsed.snapshot.expires = lapsed.timestamp.expires = lapsed.targets.expires = NOW + 60 * DAY
    lapsed.publish()
    later = NOW + 30 * DAY
    case("versions count after what was stored has expired", "rollback", "RolledBack", lapsed, stored, now=later)


def mix_cases():
    for role in ("snapshot", "targets"):
        for described in (True, False):
            mixed = Repository(described=described)
            older = mixed.files[mixed.name(role, 1)]
            mixed.release()
            mixed.files[mixed.name(role, 2)] = older
            name = "whose hash is stated" if described else "whose version alone is stated"
            case(f"an older {role} in place of one {name}", "mix_and_match", "Mismatch", mixed, mixed.at_root())
        twin = Repository()
        original = twin.files[twin.name(role, 1)]
        changed = resigned(original, twin.signers[role], lambda signed: signed.update({"spec_version": "1.0.99"}))
        twin.files[twin.name(role, 1)] = changed
        case(f"another signed {role} of the same version", "mix_and_match", "Mismatch", twin, twin.at_root())
        sized = Repository(described=False)
        holder = sized.timestamp.snapshot_meta if role == "snapshot" else sized.snapshot.meta["targets.json"]
        holder.length = len(sized.files[sized.name(role, 1)]) + 1
        if role == "targets":
            sized.publish(["snapshot", "timestamp"])
        else:
            sized.publish(["timestamp"])
        case(f"a {role} shorter than stated", "mix_and_match", "Mismatch", sized, sized.at_root())


def fast_forward_cases():
    far = 2**53 - 1
    one, both = [1], [0, 1]
    for role, keys in (("online", one), ("timestamp", one), ("snapshot", one), ("timestamp", both), ("snapshot", both)):
        stolen = Repository()
        stolen.timestamp.version = stolen.snapshot.version = stolen.targets.version = far
        stolen.publish()
        stored = stolen.stored()
        healed = Repository()
        healed.root.version = 2
        for rotated in ("timestamp", "snapshot") if role == "online" else (role,):
            healed.rotate(rotated, [KEYS[rotated][number] for number in keys])
        healed.publish_root()
        healed.publish()
        kept = "beside" if len(keys) == 2 else "in place of"
        case(
            f"a thief raised all versions; {role} has a new key {kept} the stolen one",
            "fast_forward",
            "done",
            healed,
            stored,
            after={"root": 2, "timestamp": 1, "snapshot": 1, "targets": 1},
            differs=None if role == "online" else "python-tuf forgets only what the new keys have not signed",
        )
    fewer = "a thief raised all versions; then timestamp and snapshot "
    revoked, stored = raised(far, 2)
    revoked.root.version = 2
    for role in ("timestamp", "snapshot"):
        revoked.rotate(role, KEYS[role][:1])
    healed_case(fewer + "have a key less", revoked, stored)
    strict, stored = raised(far, 2)
    strict.root.version = 2
    for role in ("timestamp", "snapshot"):
        strict.root.roles[role].threshold = 2
    healed_case(fewer + "need two keys", strict, stored)
    renamed, stored = raised(far, 1)
    renamed.root.version = 2
    old, new = KEYS["timestamp"][0].public_key, KEYS["timestamp"][1].public_key
    key = SSlibKey(old.keyid, new.keytype, new.scheme, dict(new.keyval))
    renamed.root.keys[old.keyid] = key
    renamed.signers["timestamp"] = [CryptoSigner(KEYS["timestamp"][1]._private_key, key)]
    healed_case("a thief raised all versions; then the timestamp has another key of the same identifier", renamed, stored)
    merged, stored = raised(far, 1)
    merged.root.version = 2
    merged.rotate("timestamp", KEYS["snapshot"][:1])
    healed_case("a thief raised all versions; then the timestamp has the snapshot's key", merged, stored)
    limit = Repository()
    limit.timestamp.version = far
    limit.publish(["timestamp"])
    stored = limit.stored()
    case("without new keys, versions that a thief raised stay", "fast_forward", "RolledBack", Repository(), stored)
    other = Repository()
    other.timestamp.version = far
    other.publish(["timestamp"])
    stored = other.stored()
    unrelated = Repository()
    unrelated.root.version = 2
    unrelated.rotate("targets", KEYS["targets"][1:2])
    unrelated.publish_root()
    unrelated.publish()
    case("new keys of the targets do not reset other versions", "rollback", "RolledBack", unrelated, stored)
    beyond = Repository()
    beyond.timestamp.version = far + 1
    beyond.publish(["timestamp"])
    case("a version beyond what JSON numbers hold", "fast_forward", "Malformed", beyond, beyond.at_root(),
         differs="python-tuf has no highest version")


def raised(version, key_count):
    """A repository before a thief raised its versions, and what a client has stored afterwards."""
    repository = Repository()
    for role in ("timestamp", "snapshot"):
        repository.rotate(role, KEYS[role][:key_count])
    repository.publish_root()
    repository.publish()
    before = copy.deepcopy((repository.timestamp, repository.snapshot, repository.targets))
    for one in (repository.timestamp, repository.snapshot, repository.targets):
        one.version = version
    repository.publish()
    stored = repository.stored()
    repository.timestamp, repository.snapshot, repository.targets = before
    return repository, stored


def healed_case(name, repository, stored, differs="python-tuf forgets only what the new keys have not signed"):
    repository.publish_root()
    repository.publish()
    kept = {"root": 2, "timestamp": 1, "snapshot": 1, "targets": 1}
    case(name, "fast_forward", "done", repository, stored, after=kept, differs=differs)


def stolen_key_cases():
    thieves = {"timestamp": KEYS["timestamp"][:1], "snapshot": KEYS["snapshot"][:1]}
    evil = Repository()
    stored = evil.stored()
    evil.add_target(content=b"a program of the thief\n")
    for one in (evil.targets, evil.snapshot, evil.timestamp):
        one.version += 1
    evil.publish(signers={**thieves, "targets": KEYS["snapshot"][:1] + KEYS["timestamp"][:1]})
    case("targets signed by the online keys", "stolen_online_key", "Unsigned", evil, stored, after={"targets": 1})
    for role in ("timestamp", "snapshot"):
        swapped = Repository()
        swapped.publish([role] if role == "timestamp" else ["snapshot", "timestamp"],
                        signers={**thieves, role: KEYS["thief"][:1]})
        case(f"a {role} signed by a stranger", "arbitrary_file", "Unsigned", swapped, swapped.at_root())
    crossed = Repository()
    crossed.publish(["snapshot", "timestamp"], signers={**thieves, "snapshot": KEYS["timestamp"][:1]})
    case("a snapshot signed by the timestamp's key", "stolen_online_key", "Unsigned", crossed, crossed.at_root())


def threshold_cases():
    pair = Repository()
    pair.rotate("targets", KEYS["targets"][:3], 2)
    pair.publish_root()
    pair.publish()
    case("two of three keys are enough", None, "done",
         with_signers(pair, KEYS["targets"][1:3]), pair.at_root())
    case("one of three keys is too few", "stolen_online_key", "Unsigned",
         with_signers(pair, KEYS["targets"][:1]), pair.at_root())
    case("a stranger's key does not complete the threshold", "stolen_online_key", "Unsigned",
         with_signers(pair, KEYS["targets"][:1] + KEYS["thief"][:1]), pair.at_root())
    twice = with_signers(pair, KEYS["targets"][:1])
    case("one key that signs twice", "stolen_online_key", "Malformed",
         doubled(pair, twice), pair.at_root())
    alias = Repository()
    key = KEYS["targets"][0].public_key
    other = SSlibKey("0" * 64, key.keytype, key.scheme, dict(key.keyval))
    alias.root.add_key(other, "targets")
    alias.root.roles["targets"].threshold = 2
    alias.publish_root()
    alias_signer = CryptoSigner(KEYS["targets"][0]._private_key, other)
    alias.publish(signers={**alias.signers, "targets": [KEYS["targets"][0], alias_signer]})
    case("one key under two identifiers counts once", "stolen_online_key", "Unsigned", alias, alias.at_root(),
         differs="python-tuf counts identifiers")
    elliptic = CryptoSigner(ec.derive_private_key(7, ec.SECP256R1()))
    curve = Repository()
    curve.rotate("timestamp", [elliptic])
    curve.publish_root()
    content = b'{"signatures":[{"keyid":"%s","sig":"00"}],"signed":%s}' % (
        elliptic.public_key.keyid.encode(), json.dumps(json.loads(curve.files["timestamp.json"])["signed"]).encode())
    curve.files["timestamp.json"] = content
    case("a role whose only key is of another kind", "arbitrary_file", "Unsigned", curve, curve.at_root())


def with_signers(repository, signers):
    other = copy.deepcopy(repository.files)
    whole = copy.copy(repository)
    whole.files = other
    whole.publish(signers={**repository.signers, "targets": signers})
    return dict(whole.files)


def doubled(repository, files):
    """The targets' one signature is listed twice, and snapshot and timestamp describe that file."""
    name = repository.name("targets", repository.targets.version)
    whole = json.loads(files[name])
    whole["signatures"] *= 2
    content = json.dumps(whole).encode()
    made = copy.copy(repository)
    made.files = dict(files)
    made.files[name] = content
    made.snapshot = copy.deepcopy(repository.snapshot)
    made.timestamp = copy.deepcopy(repository.timestamp)
    made.snapshot.meta["targets.json"] = repository.meta(repository.targets.version, content)
    made.publish(["snapshot", "timestamp"])
    return made.files


def wrong_role_cases():
    shared = Repository(shared=True, described=False)
    stored = shared.at_root()
    files = shared.files
    role_of = {"timestamp": "timestamp.json", "snapshot": "1.snapshot.json", "targets": "1.targets.json"}
    for role, other in (("timestamp", "snapshot"), ("snapshot", "timestamp"), ("targets", "snapshot")):
        shown = {**files, role_of[role]: files[role_of[other]]}
        case(f"a {other} in place of the {role}, with the right keys", "wrong_role", "WrongRole", shown, stored)
    shown = {**files, "2.root.json": resigned(files["1.targets.json"], KEYS["root"][:2], lambda signed: None)}
    case("targets in place of the next root, signed by the root keys", "wrong_role", "WrongRole", shown, stored)
    posing = resigned(files["1.snapshot.json"], shared.signers["snapshot"], lambda signed: signed.update({"_type": "x"}))
    case("a snapshot of no known type", "wrong_role", "WrongRole", {**files, "1.snapshot.json": posing}, stored)


def endless_cases():
    pad = lambda size: lambda signed: signed.update({"x": "x" * size})
    # A limit of ours, far below python-tuf's.
    ours = "python-tuf has higher limits"
    big = Repository(described=False)
    for role, name, size in (("timestamp", "timestamp.json", 16), ("snapshot", "1.snapshot.json", 64), ("targets", "1.targets.json", 256)):
        content = resigned(big.files[name], big.signers[role], pad(size << 10))
        case(f"a {role} larger than any", "endless_data", "TooLarge", {**big.files, name: content}, big.at_root(),
             differs=None if role == "timestamp" else ours)
    root = resigned(big.files["1.root.json"], big.signers["root"], lambda signed: signed.update({"version": 2, "x": "x" * (64 << 10)}))
    case("a root larger than any", "endless_data", "TooLarge", {**big.files, "2.root.json": root}, big.at_root(), differs=ours)
    for role in ("snapshot", "targets"):
        long = Repository()
        long.files[f"1.{role}.json"] += b" " * 40
        case(f"a {role} longer than stated", "endless_data", "TooLarge", long, long.at_root())


def malformed_cases():
    base = Repository(described=False)
    stored = base.at_root()
    for name, content in (("no JSON", b"<html></html>"), ("nothing", b""), ("a number", b"1")):
        case(f"{name} in place of the timestamp", "arbitrary_file", "Malformed", {**base.files, "timestamp.json": content}, stored)
    changed = base.files["timestamp.json"].replace(b'"version":1', b'"version":2')
    case("a timestamp changed after it was signed", "arbitrary_file", "Unsigned", {**base.files, "timestamp.json": changed}, stored)
    for role, name in (("snapshot", "1.snapshot.json"), ("targets", "1.targets.json")):
        files = {file: content for file, content in base.files.items() if file != name}
        case(f"the {role} is not there", "mix_and_match", "Missing", files, stored)
    files = {file: content for file, content in base.files.items() if file != "timestamp.json"}
    case("there is no timestamp", "freeze", "Missing", files, stored)

    def timestamp(change):
        return {**base.files, "timestamp.json": resigned(base.files["timestamp.json"], base.signers["timestamp"], change)}

    case("a newer major version of the specification", None, "Unsupported", timestamp(lambda s: s.update({"spec_version": "2.0.0"})), stored)
    case("version zero", None, "Malformed", timestamp(lambda s: s.update({"version": 0})), stored)
    case("a snapshot of version zero", None, "Malformed",
         timestamp(lambda s: s["meta"]["snapshot.json"].update({"version": 0})), stored)
    case("a hash that is too short", None, "Malformed",
         timestamp(lambda s: s["meta"]["snapshot.json"].update({"hashes": {"sha256": "ab"}})), stored)
    case("no date", None, "Malformed", timestamp(lambda s: s.update({"expires": "tomorrow"})), stored)
    case("no snapshot is named", None, "Malformed", timestamp(lambda s: s["meta"].clear()), stored)
    case("a hash of another kind alone", None, "Unsupported",
         timestamp(lambda s: s["meta"]["snapshot.json"].update({"hashes": {"sha512": hashlib.sha512(base.files["1.snapshot.json"]).hexdigest()}})),
         stored, differs="python-tuf knows more hashes")
    bare = resigned(base.files["1.snapshot.json"], base.signers["snapshot"], lambda s: s.update({"meta": {}}))
    case("a snapshot without targets", None, "Malformed", {**base.files, "1.snapshot.json": bare}, stored)
    climbing = Repository()
    climbing.add_target("../../etc/passwd")
    climbing.publish()
    case("a target outside of the repository", "arbitrary_file", "Malformed", climbing, climbing.at_root(),
         differs="python-tuf escapes the path instead")
    zero = Repository()
    zeroed = resigned(zero.files["1.root.json"], zero.signers["root"],
                      lambda s: (s.update({"version": 2}), s["roles"]["targets"].update({"threshold": 0})))
    case("a root with a threshold of zero", "stolen_online_key", "Malformed", {**zero.files, "2.root.json": zeroed}, zero.at_root())


class Shown(FetcherInterface):
    def __init__(self, files):
        self.files = files

    def _fetch(self, url):
        name = url.rsplit("/", 1)[1]
        if name not in self.files:
            raise DownloadHTTPError("not there", 404)
        yield self.files[name]


def ask_python_tuf(one):
    with tempfile.TemporaryDirectory() as folder:
        for role, content in one["stored"].items():
            Path(folder, f"{role}.json").write_bytes(content)
        try:
            updater = Updater(folder, "https://repository/", fetcher=Shown(one["files"]), bootstrap=one["stored"]["root"])
            updater._trusted_set.reference_time = one["now"]
            updater.refresh()
            return "done"
        except (RepositoryError, DownloadError) as error:
            return f"refused: {error}"


def build():
    for make in (accepted_cases, freeze_cases, root_cases, rollback_cases, mix_cases, fast_forward_cases,
                 stolen_key_cases, threshold_cases, wrong_role_cases, endless_cases, malformed_cases):
        make()
    documents, cases = {}, []

    def document(content):
        text = content.decode()
        # Padding would fill the file with nothing.
        shown = {"text": text} if len(text) < 8000 else {"text": text.replace("x" * 1024, ""), "padKiB": text.count("x" * 1024)}
        return documents.setdefault(json.dumps(shown), len(documents))

    for one in CASES:
        found = ask_python_tuf(one)
        agrees = (found == "done") == (one["verdict"] == "done")
        if agrees == bool(one["differs"]):
            sys.exit(f"{one['name']}: expected {one['verdict']}, python-tuf says {found}")
        cases.append(
            {
                "name": one["name"],
                "attack": one["attack"],
                "verdict": one["verdict"],
                "nowUnixS": int(one["now"].timestamp()),
                "stored": {role: document(content) for role, content in one["stored"].items()},
                "files": {name: document(content) for name, content in sorted(one["files"].items())},
                "after": one["after"],
                "differsFromPythonTuf": one["differs"],
            }
        )
    whole = {
        "version": 1,
        "madeBy": f"python-tuf {tuf.__version__}",
        "target": {"path": PATH, "content": PROGRAM.decode()},
        "documents": [json.loads(text) for text in documents],
        "cases": cases,
    }
    return json.dumps(whole, indent=1, ensure_ascii=True) + "\n"


if __name__ == "__main__":
    text = build()
    if "--check" in sys.argv:
        if OUT.read_text() != text:
            sys.exit(f"{OUT} is not what python-tuf {tuf.__version__} makes; run this without --check and look at the difference.")
    else:
        OUT.write_text(text)
    print(f"{len(CASES)} cases, {sum(1 for one in CASES if one['attack'])} of them attacks")
