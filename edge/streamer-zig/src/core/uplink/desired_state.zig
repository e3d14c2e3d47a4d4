//! The desired state as the API sends it (packages/proto/UPLINK.md, `desiredState` in
//! src/uplink.ts): envelope, signature, schema, limits. An accepted state is safe to act on. It
//! must never depend on a clock: an old snapshot is recognized by its pair alone.

const std = @import("std");
const base = @import("base");
const key_text = @import("key_text.zig");
const DeviceIdentity = @import("../site/device_identity.zig");
const sealed_box = @import("sealed_box.zig");
const site_edges = @import("../site/edges.zig");
const state_delta = @import("state_delta.zig");
const assert = std.debug.assert;
const Ed25519 = base.Ed25519;

pub const envelope_size_max = 8 << 20;
pub const devices_max = 20_000;
const vdisks_max = 256;
pub const versions_max = 1024;
const power_ons_max = 1024;
pub const power_orders_max = 1024;
const menus_max = 256;
pub const menu_entries_max = 16;
pub const menu_title_size_max = 64;
const ignored_macs_max = 4096;
pub const schedules_max = 256;
const schedule_instants_max = 1024;
const state_instants_max = 32_768;
const state_targets_max = 131_072;
const rate_per_minute_max = 6000;
pub const store_jobs_max = 64;
const kept_differences_max = 256;
const home_edges_max = 64;
const key_policies_max = 64;
const tunings_max = 512;
const settings_max = 16;
const setting_size_max = 64;
const trials_max = 512;
pub const command_line_size_max = 1024;
pub const schema = 1;

/// JSON numbers of the protocol are at most 2^53 - 1.
const number_max = (1 << 53) - 1;

/// Only a higher pair replaces an edge's state; a restored control plane starts a new incarnation.
pub const Pair = struct {
    incarnation: u64 = 0,
    counter: u64 = 0,

    fn isHigher(pair: Pair, than: Pair) bool {
        if (pair.incarnation != than.incarnation) return pair.incarnation > than.incarnation;
        return pair.counter > than.counter;
    }
};

pub const UnknownDevices = enum { ignore, boot };

/// Identifies the bytes of a version in the store.
pub const Manifest = struct {
    /// 32 bytes in base64, as `accept` has verified.
    root: []const u8,
    counter: u64,

    pub fn rootHash(manifest: *const Manifest) [32]u8 {
        return key_text.parse(manifest.root) catch unreachable;
    }
};

/// Names are those of the JSON.
pub const Version = struct {
    id: base.Uuid,
    number: u64,
    sizeBytes: u64,
    diskPath: []const u8,
    kernelPath: ?[]const u8 = null,
    initrdPath: ?[]const u8 = null,
    commandLine: []const u8,
    /// In the store, and not a file at `diskPath`.
    manifest: ?Manifest = null,
    /// For a version that is still written: the version below its layer.
    layerAboveVersionId: ?base.Uuid = null,
};

pub const WriteCacheFull = enum { stop, read_only };

/// Where a device's writes go.
pub const WriteCache = struct {
    /// Kept as text: a class unknown to this edge prevents the boot, and is never mapped to another
    /// class.
    class: []const u8,
    /// Per device.
    limitBytes: ?u64 = null,
    full: WriteCacheFull,
};

/// Becomes the vDisk's default at that instant, with or without the control plane.
pub const PendingRelease = struct { versionId: base.Uuid, atUnixMs: u64 };

pub const Vdisk = struct {
    id: base.Uuid,
    name: []const u8,
    /// The version that production devices boot comes first.
    versions: []const Version,
    /// Null: `device_ram` without a limit.
    writeCache: ?WriteCache = null,
    defaultVersionId: ?base.Uuid = null,
    overrideVersionId: ?base.Uuid = null,
    pending: ?PendingRelease = null,
};

/// The choice of a collection for the keys of its devices. Words are kept as text: with one that is
/// unknown to this edge it opens least.
pub const KeyPolicy = struct {
    learn: []const u8,
    without: []const u8,

    pub fn read(said: *const KeyPolicy) DeviceIdentity.Policy {
        return .{
            .enrolment = if (std.mem.eql(u8, said.learn, "accept_first"))
                .first_boot
            else
                .approval,
            .without_key = if (std.mem.eql(u8, said.without, "everything"))
                .everything
            else if (std.mem.eql(u8, said.without, "shared"))
                .shared_only
            else
                .refuse,
        };
    }
};

pub const DeviceType = enum { production, @"test", maintenance };

pub const Device = struct {
    id: base.Uuid,
    name: []const u8,
    mac: base.Mac,
    versionId: base.Uuid,
    enabled: bool,
    deviceType: DeviceType = .production,
    /// This device writes `versionId`.
    writes: bool = false,
    /// Index into the state's `homeEdges`: the only edge that keeps the device's writes. Null: it
    /// has no such writes.
    home: ?u32 = null,
    /// Overrides the site's.
    bootProgramSet: ?[]const u8 = null,
    menuId: ?base.Uuid = null,
    /// Index into the state's `keyPolicies`. Null: the first key is accepted, and nothing refused
    /// to a device without one.
    keyPolicy: ?u32 = null,
    /// SHA-256 of the device's key in base64, as `accept` has verified; null: none is known.
    key: ?[]const u8 = null,
    /// A person has decided that the device has no key.
    keyless: bool = false,
    keyRevision: u64 = 0,
    /// Index into the state's `tunings`. Null: its boots have no settings beside their version's.
    tuning: ?u32 = null,

    pub fn identity(device: *const Device) DeviceIdentity.Stated {
        return .{
            .state = if (device.key) |text|
                .{ .known = key_text.parse(text) catch unreachable }
            else if (device.keyless) .keyless else .unknown,
            .revision = device.keyRevision,
        };
    }
};

/// An edge that keeps the writes of some device of this state; possibly this one.
pub const WriteOwnerEdge = struct { id: base.Uuid, name: []const u8 };

pub const MenuEntryKind = enum { version, local_disk };

pub const MenuEntry = struct {
    kind: MenuEntryKind,
    title: []const u8,
    versionId: ?base.Uuid = null,
    /// It stands for the version that the vDisk's production devices boot.
    followsVdisk: bool = false,
};

pub const Menu = struct {
    id: base.Uuid,
    timeoutMs: u32,
    defaultEntry: u32,
    entries: []const MenuEntry,
};

/// The boots whose packets are kept.
pub const Capture = enum { never, failed, always };

pub const PowerOn = struct { id: base.Uuid, deviceId: base.Uuid, mac: base.Mac };

pub const PowerOrderKind = enum { power_off, restart };

pub const PowerOrder = struct {
    id: base.Uuid,
    deviceId: base.Uuid,
    mac: base.Mac,
    order: PowerOrderKind,
};

/// A schedule that the edge starts by itself. Words are kept as text: one that is unknown to this
/// edge disables only its own schedule.
pub const Schedule = struct {
    id: base.Uuid,
    action: []const u8,
    power: []const u8,
    ratePerMinute: u32,
    /// Indexes into the state's devices.
    devices: []const u32,
    /// In ms since 1970 in UTC, ascending.
    instants: []const u64,

    /// One of its instants was at most `within_ms` before `unix_ms`.
    pub fn isNear(schedule: *const Schedule, unix_ms: u64, within_ms: u64) bool {
        for (schedule.instants) |instant_ms| {
            if (instant_ms > unix_ms) return instant_ms - unix_ms <= within_ms;
        }
        return false;
    }
};

/// A store job; the same order again changes nothing. A kind that is unknown to this edge is
/// reported as failed.
pub const StoreJob = struct {
    id: base.Uuid,
    kind: []const u8,
    /// Null: all of the store.
    vdiskId: ?base.Uuid = null,
    versionId: ?base.Uuid = null,
    /// The version that a merge creates.
    intoVersionId: ?base.Uuid = null,
    /// Number of the version that the job creates.
    number: ?u64 = null,
    parentVersionId: ?base.Uuid = null,
    /// The device whose writes are dropped, and their class; for a private image the vDisk is
    /// named, too.
    deviceId: ?base.Uuid = null,
    layerClass: ?[]const u8 = null,
    /// Of an import: below the store's directory.
    sourcePath: ?[]const u8 = null,
    /// Instead: the edge fetches it from this URL; other bytes than of the SHA-256 are refused.
    sourceUrl: ?[]const u8 = null,
    /// Instead: the edge fetches it from the control plane, with this size and SHA-256. The size
    /// alone: an empty disk.
    uploadId: ?base.Uuid = null,
    sourceSizeBytes: ?u64 = null,
    sourceSha256: ?[]const u8 = null,
    kernelPath: ?[]const u8 = null,
    initrdPath: ?[]const u8 = null,
    commandLine: ?[]const u8 = null,
    /// The version whose kernel and initramfs an import takes.
    bootVersionId: ?base.Uuid = null,
    /// Drivers that are added to an initramfs that is made.
    modules: []const []const u8 = &.{},
    /// Replaces those that are taken from the disk.
    bootFiles: ?BootFiles = null,
    /// Of the file that an export writes.
    format: ?[]const u8 = null,
    /// What a `pack` makes and a `fetch` gets (difference_order.zig).
    differenceId: ?base.Uuid = null,
    /// The version that the difference is based on; null: none.
    baseVersionId: ?base.Uuid = null,
    toControlPlane: bool = false,
    /// Of the version that is fetched.
    manifest: ?Manifest = null,
    differenceSizeBytes: ?u64 = null,
    differenceListSha256: ?[]const u8 = null,
    sources: []const base.Uuid = &.{},
    fromControlPlane: bool = false,
    rateBytesPerSecond: ?u64 = null,

    pub const BootFiles = enum { parent, none };
};

/// Settings for one boot of a device, which belongs to an experiment: in place of the device's own.
/// The boot's report names it.
pub const Trial = struct {
    id: base.Uuid,
    deviceId: base.Uuid,
    /// Index into the state's `tunings`.
    tuning: u32,
    /// From then on by this edge's clock it is none: a forgotten experiment ends by itself.
    untilUnixMs: u64,
};

/// `attempt` counts how often the release was ordered here.
pub const Release = struct { version: []const u8, attempt: u64 };

pub const DesiredState = struct {
    edgeId: base.Uuid,
    organizationId: base.Uuid,
    siteId: base.Uuid,
    siteName: []const u8,
    incarnation: u64,
    counter: u64,
    unknownDevices: UnknownDevices,
    vdisks: []const Vdisk,
    devices: []const Device,
    powerOns: []const PowerOn,
    /// Only from control planes that know them.
    powerOrders: []const PowerOrder = &.{},
    bootProgramSet: ?[]const u8 = null,
    menus: []const Menu = &.{},
    ignoredMacs: []const base.Mac = &.{},
    capture: Capture = .failed,
    /// Where people open the dashboard; kept as text, which `PageLink` checks.
    dashboardUrl: ?[]const u8 = null,
    /// Hours between two copies of write caches for another edge of the site; 0: none.
    cacheCopyHours: u16 = 0,
    siteEdges: ?site_edges.Description = null,
    homeEdges: []const WriteOwnerEdge = &.{},
    keyPolicies: []const KeyPolicy = &.{},
    /// Each is a list of settings, `name=value` (core/target/tuning.zig).
    tunings: []const []const []const u8 = &.{},
    trials: []const Trial = &.{},
    schedules: []const Schedule = &.{},
    storeJobs: []const StoreJob = &.{},
    /// Differences that this edge keeps for other edges of its site.
    keptDifferences: []const base.Uuid = &.{},
    issuedUnixMs: u64 = 0,
    /// Null only in a state that was not parsed.
    schema: ?u64 = null,

    /// The edge's key that another is to replace.
    rotateKey: ?[]const u8 = null,

    /// The release that this edge is to run; null: the one that it has.
    release: ?Release = null,

    /// `Sealed` as JSON, in a box for this edge alone and in base64 (sealed_box.zig).
    sealed: ?[]const u8 = null,

    /// Without a policy, the first key is accepted, and nothing refused to a device without one: as
    /// before there was a choice.
    pub fn keyPolicyOf(state: *const DesiredState, device: *const Device) DeviceIdentity.Policy {
        const index = device.keyPolicy orelse return .{ .without_key = .everything };
        return state.keyPolicies[index].read();
    }

    pub fn pair(state: *const DesiredState) Pair {
        return .{ .incarnation = state.incarnation, .counter = state.counter };
    }
};

/// States that one key of the organization follows another (`signingKeyStatement` in
/// src/uplink-keys.ts).
pub const SigningKeyStatement = struct {
    id: base.Uuid,
    publicKey: []const u8,
    previousPublicKey: []const u8,
    signature: []const u8,
};

const signing_key_statements_max = 256;

pub const Envelope = struct {
    payload: []const u8,
    signature: []const u8,
    keyId: []const u8,
    /// Oldest first.
    keys: []const SigningKeyStatement = &.{},
};

/// What the control plane sends: an envelope, or one with a change of the payload that this edge
/// has in place of a payload.
const Answer = struct {
    payload: ?[]const u8 = null,
    delta: ?state_delta.Delta = null,
    signature: []const u8,
    keyId: []const u8,
    keys: []const SigningKeyStatement = &.{},
};

/// How an accepted state came.
pub const Received = struct {
    envelope: Envelope,
    is_delta: bool,
};

/// The key that verified a state, to be pinned in place of the previous one.
pub const VerifiedKey = struct {
    key: [32]u8,
    /// Null if no statement led to it.
    id: ?base.Uuid = null,
    /// The pinned key did not lead to it; one that was named on this machine did.
    is_named: bool = false,
};

pub const Refusal = error{
    TooLarge,
    EnvelopeMalformed,
    SignatureInvalid,
    SchemaTooNew,
    StateMalformed,
    OtherEdge,
    NotHigher,
    NotOpened,
    /// What was sent is a change that leads from no state of this edge to one that it accepts. The
    /// whole state may be acceptable.
    DeltaUnfit,
    OutOfMemory,
};

/// What the edge trusts since its enrolment.
pub const TrustAnchor = struct {
    edge_id: base.Uuid,
    signing_key: [32]u8,
    /// Null: no other key is accepted.
    organization_id: ?base.Uuid = null,
    /// Named on this machine by an administrator (`bootfarm-edge trust-key`): accepted if the
    /// pinned key does not lead to the signing key, after a restore to before a change of keys.
    named_key: ?[32]u8 = null,
    reached: ?*VerifiedKey = null,
    /// Opens what the control plane has sealed to this edge; null: no sealed state is accepted.
    seal_secret: ?base.x25519.Key = null,
    /// The pair of the edge's current state; only a higher one is accepted.
    above: ?Pair = null,
    /// What a delta may change; null: only whole states are accepted.
    base: ?*const state_delta.Base = null,
    received: ?*Received = null,
};

/// Verifies an envelope and parses its state. Everything returned lives in `arena`, or points into
/// `text`.
pub fn accept(
    arena: std.mem.Allocator,
    text: []const u8,
    expected: TrustAnchor,
) Refusal!DesiredState {
    if (text.len > envelope_size_max) return error.TooLarge;
    const answer = parse(Answer, arena, text) catch |err| return switch (err) {
        error.OutOfMemory => error.OutOfMemory,
        error.Malformed => error.EnvelopeMalformed,
    };
    if (answer.delta) |*delta| return acceptDelta(arena, &answer, delta, &expected) catch |err|
        switch (err) {
            error.OutOfMemory => error.OutOfMemory,
            else => error.DeltaUnfit,
        };
    const payload = answer.payload orelse return error.EnvelopeMalformed;
    return acceptWhole(arena, envelopeOf(&answer, payload), &expected);
}

/// Makes the payload and accepts it as one that came whole: the signature is that of the payload.
fn acceptDelta(
    arena: std.mem.Allocator,
    answer: *const Answer,
    delta: *const state_delta.Delta,
    expected: *const TrustAnchor,
) (Refusal || error{Unfit})!DesiredState {
    if (answer.payload != null) return error.Unfit;
    const former = expected.base orelse return error.Unfit;
    const payload = try state_delta.apply(arena, former, delta, envelope_size_max);
    const state = try acceptWhole(arena, envelopeOf(answer, payload), expected);
    if (expected.received) |received| received.is_delta = true;
    return state;
}

fn envelopeOf(answer: *const Answer, payload: []const u8) Envelope {
    return .{
        .payload = payload,
        .signature = answer.signature,
        .keyId = answer.keyId,
        .keys = answer.keys,
    };
}

fn acceptWhole(
    arena: std.mem.Allocator,
    envelope: Envelope,
    expected: *const TrustAnchor,
) Refusal!DesiredState {
    const reached = try verifiedKey(&envelope, expected);
    var state = parse(DesiredState, arena, envelope.payload) catch |err| switch (err) {
        error.OutOfMemory => return error.OutOfMemory,
        // A newer schema may look different.
        error.Malformed => {
            try checkSchema(parse(Head, arena, envelope.payload) catch Head{});
            return error.StateMalformed;
        },
    };
    try checkSchema(.{ .schema = state.schema });
    if (!state.edgeId.eql(expected.edge_id)) return error.OtherEdge;
    if (state.sealed) |box| try openSealed(arena, &state, box, expected);
    try checkLimits(&state);
    if (expected.above) |above| if (!state.pair().isHigher(above)) return error.NotHigher;
    if (expected.reached) |place| place.* = reached;
    if (expected.received) |place| place.* = .{ .envelope = envelope, .is_delta = false };
    return state;
}

/// What states of every schema have.
const Head = struct { schema: ?u64 = null };

fn checkSchema(head: Head) Refusal!void {
    const stated = head.schema orelse return error.StateMalformed;
    if (stated > schema) return error.SchemaTooNew;
}

/// The keys that only this edge may read.
const Sealed = struct { siteKey: ?[]const u8 = null, ticketKeys: []const []const u8 = &.{} };

/// Puts what is in the box where an open state has it.
fn openSealed(
    arena: std.mem.Allocator,
    state: *DesiredState,
    text: []const u8,
    expected: *const TrustAnchor,
) Refusal!void {
    const decoder = std.base64.standard.Decoder;
    const size = decoder.calcSizeForSlice(text) catch return error.StateMalformed;
    const bytes = try arena.alloc(u8, size);
    decoder.decode(bytes, text) catch return error.StateMalformed;
    const secret = if (expected.seal_secret) |*secret| secret else return error.NotOpened;
    const out = try arena.alloc(u8, size -| sealed_box.overhead_size);
    const info = "bootfarm-state-sealed-v1\n".* ++ expected.edge_id.toText();
    const opened = sealed_box.open(secret, .{ .bytes = bytes, .info = &info }, out) catch
        return error.NotOpened;
    const sealed = parse(Sealed, arena, opened) catch |err| return switch (err) {
        error.OutOfMemory => error.OutOfMemory,
        error.Malformed => error.StateMalformed,
    };
    const site = if (state.siteEdges) |*site| site else return;
    site.key = sealed.siteKey orelse return error.StateMalformed;
    site.ticketKeys = sealed.ticketKeys;
}

pub fn sentence(refusal: Refusal) []const u8 {
    return switch (refusal) {
        error.TooLarge => "it holds more than an edge takes",
        error.EnvelopeMalformed => "it is not a state envelope",
        error.SignatureInvalid => "its signature is not by the organization's key that is " ++
            "pinned here, nor by one that follows it",
        error.SchemaTooNew => "its schema is newer than this edge knows; update the edge",
        error.StateMalformed => "it is not a desired state",
        error.OtherEdge => "it is for another edge",
        error.NotHigher => "it is not newer than the state that this edge has",
        error.NotOpened => "its keys are sealed to another key than this edge's seal.key",
        error.DeltaUnfit => "it is a change that does not lead from this edge's state to one " ++
            "that the organization has signed",
        error.OutOfMemory => "there is not enough memory",
    };
}

/// The word of the heartbeat (`stateRefusals` in src/uplink.ts).
pub fn word(refusal: Refusal) []const u8 {
    return switch (refusal) {
        error.TooLarge => "too_large",
        error.EnvelopeMalformed, error.StateMalformed, error.DeltaUnfit => "malformed",
        error.SignatureInvalid => "signature_invalid",
        error.SchemaTooNew => "schema_too_new",
        error.OtherEdge => "other_edge",
        error.NotHigher => "not_higher",
        error.NotOpened => "not_opened",
        error.OutOfMemory => "out_of_memory",
    };
}

fn verifiedKey(envelope: *const Envelope, expected: *const TrustAnchor) Refusal!VerifiedKey {
    if (verifiedFrom(
        expected.signing_key,
        envelope,
        expected,
    )) |reached| return reached else |refusal| {
        const named_key = expected.named_key orelse return refusal;
        if (refusal != error.SignatureInvalid) return refusal;
        var reached = try verifiedFrom(named_key, envelope, expected);
        reached.is_named = true;
        return reached;
    }
}

fn verifiedFrom(
    key: [32]u8,
    envelope: *const Envelope,
    expected: *const TrustAnchor,
) Refusal!VerifiedKey {
    const reached = try resolveKey(key, envelope.keys, expected);
    try verify(envelope, reached.key);
    return reached;
}

/// Returns the newest key that statements lead to from this one. Only that key signs: a key that
/// was replaced is retired.
fn resolveKey(
    key: [32]u8,
    statements: []const SigningKeyStatement,
    expected: *const TrustAnchor,
) Refusal!VerifiedKey {
    var reached: VerifiedKey = .{ .key = key };
    if (statements.len > signing_key_statements_max) return error.EnvelopeMalformed;
    for (statements) |*statement| {
        const organization_id = expected.organization_id orelse return reached;
        const previous = key_text.parse(statement.previousPublicKey) catch
            return error.EnvelopeMalformed;
        if (!std.mem.eql(u8, &previous, &reached.key)) continue;
        const next = key_text.parse(statement.publicKey) catch return error.EnvelopeMalformed;
        const public_key = Ed25519.PublicKey.fromBytes(previous) catch
            return error.SignatureInvalid;
        const signature = try signatureOf(statement.signature);
        const id = statement.id.toText();
        const lines = [_][]const u8{
            "bootfarm-signing-key-v1\n", &organization_id.toText(), "\n",                statement.previousPublicKey, "\n",
            &id,                         "\n",                      statement.publicKey,
        };
        try signature.verify(&lines, public_key);
        reached = .{ .key = next, .id = statement.id };
    }
    return reached;
}

fn signatureOf(text: []const u8) Refusal!Ed25519.Signature {
    const decoder = std.base64.standard.Decoder;
    var raw: [Ed25519.Signature.encoded_length]u8 = undefined;
    const size = decoder.calcSizeForSlice(text) catch return error.EnvelopeMalformed;
    if (size != raw.len) return error.EnvelopeMalformed;
    decoder.decode(&raw, text) catch return error.EnvelopeMalformed;
    return .fromBytes(raw);
}

fn verify(envelope: *const Envelope, key: [32]u8) Refusal!void {
    const public_key = Ed25519.PublicKey.fromBytes(key) catch return error.SignatureInvalid;
    const signature = try signatureOf(envelope.signature);
    try signature.verify(&.{ "bootfarm-state-v1\n", envelope.payload }, public_key);
}

fn parse(
    comptime T: type,
    arena: std.mem.Allocator,
    text: []const u8,
) error{ Malformed, OutOfMemory }!T {
    return std.json.parseFromSliceLeaky(T, arena, text, .{
        .ignore_unknown_fields = true,
        .max_value_len = envelope_size_max,
    }) catch |err| switch (err) {
        error.OutOfMemory => error.OutOfMemory,
        else => error.Malformed,
    };
}

fn checkLimits(state: *const DesiredState) Refusal!void {
    if (state.devices.len > devices_max) return error.TooLarge;
    if (state.vdisks.len > vdisks_max) return error.TooLarge;
    if (state.powerOns.len > power_ons_max) return error.TooLarge;
    if (state.powerOrders.len > power_orders_max) return error.TooLarge;
    for (state.powerOrders) |*order| if (order.id.eql(.zero)) return error.StateMalformed;
    if (state.menus.len > menus_max) return error.TooLarge;
    for (state.menus) |*menu| try checkMenu(menu);
    if (state.ignoredMacs.len > ignored_macs_max) return error.TooLarge;
    if (state.siteEdges) |*site| site_edges.check(site) catch |err| return switch (err) {
        error.TooLarge => error.TooLarge,
        error.Malformed => error.StateMalformed,
    };
    if (state.homeEdges.len > home_edges_max) return error.TooLarge;
    if (state.keyPolicies.len > key_policies_max) return error.TooLarge;
    for (state.devices) |*device| try checkDevice(state, device);
    try checkTunings(state);
    try checkSchedules(state);
    if (state.incarnation > number_max) return error.StateMalformed;
    if (state.counter > number_max) return error.StateMalformed;
    var version_count: usize = 0;
    for (state.vdisks) |*vdisk| {
        version_count += vdisk.versions.len;
        try checkVdisk(vdisk);
    }
    if (version_count > versions_max) return error.TooLarge;
    if (state.storeJobs.len > store_jobs_max) return error.TooLarge;
    if (state.keptDifferences.len > kept_differences_max) return error.TooLarge;
    for (state.storeJobs) |*job|
        if (job.number) |number| if (number > number_max) return error.StateMalformed;
}

fn checkDevice(state: *const DesiredState, device: *const Device) Refusal!void {
    if (device.home) |home| if (home >= state.homeEdges.len) return error.StateMalformed;
    if (device.keyPolicy) |index|
        if (index >= state.keyPolicies.len) return error.StateMalformed;
    if (device.tuning) |index| if (index >= state.tunings.len) return error.StateMalformed;
    if (device.keyRevision > number_max) return error.StateMalformed;
    const text = device.key orelse return;
    if (device.keyless) return error.StateMalformed;
    _ = key_text.parse(text) catch return error.StateMalformed;
}

/// A setting that is unknown here is no fault: newer control planes have more.
fn checkTunings(state: *const DesiredState) Refusal!void {
    if (state.tunings.len > tunings_max or state.trials.len > trials_max) return error.TooLarge;
    for (state.tunings) |settings| {
        if (settings.len > settings_max) return error.TooLarge;
        for (settings) |setting| if (setting.len > setting_size_max) return error.TooLarge;
    }
    for (state.trials) |*trial| {
        if (trial.tuning >= state.tunings.len) return error.StateMalformed;
        if (trial.untilUnixMs > number_max) return error.StateMalformed;
    }
}

fn checkVdisk(vdisk: *const Vdisk) Refusal!void {
    if (vdisk.writeCache) |cache| if (cache.limitBytes) |limit|
        if (limit == 0 or limit > number_max) return error.StateMalformed;
    if (vdisk.pending) |pending| if (pending.atUnixMs > number_max) return error.StateMalformed;
    for (vdisk.versions) |*version| if (version.manifest) |manifest| {
        if (manifest.counter > number_max) return error.StateMalformed;
        _ = key_text.parse(manifest.root) catch return error.StateMalformed;
    };
}

fn checkSchedules(state: *const DesiredState) Refusal!void {
    if (state.schedules.len > schedules_max) return error.TooLarge;
    var instant_count: usize = 0;
    var target_count: usize = 0;
    for (state.schedules) |*schedule| {
        if (schedule.instants.len > schedule_instants_max) return error.TooLarge;
        instant_count += schedule.instants.len;
        target_count += schedule.devices.len;
        if (schedule.ratePerMinute == 0 or schedule.ratePerMinute > rate_per_minute_max)
            return error.StateMalformed;
        for (schedule.devices) |index| if (index >= state.devices.len) return error.StateMalformed;
        for (schedule.instants, 0..) |instant, index| {
            if (instant > number_max) return error.StateMalformed;
            if (index > 0 and instant <= schedule.instants[index - 1]) return error.StateMalformed;
        }
    }
    if (instant_count > state_instants_max or target_count > state_targets_max)
        return error.TooLarge;
}

fn checkMenu(menu: *const Menu) Refusal!void {
    if (menu.entries.len > menu_entries_max) return error.TooLarge;
    if (menu.defaultEntry >= menu.entries.len) return error.StateMalformed;
    for (menu.entries) |*entry| {
        if (entry.title.len == 0 or entry.title.len > menu_title_size_max)
            return error.StateMalformed;
        for (entry.title) |byte| if (!std.ascii.isPrint(byte)) return error.StateMalformed;
        if (entry.kind == .version and entry.versionId == null) return error.StateMalformed;
    }
}

test {
    _ = @import("desired_state_test.zig");
}
