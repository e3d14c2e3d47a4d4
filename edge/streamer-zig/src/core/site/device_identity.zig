//! What an edge knows of one device's key, and what a HELLO of that device may open: private
//! images, write caches that outlive a boot, maintenance versions and secrets are for the device
//! whose key is known. A key is remembered at the first boot or after a person has approved it;
//! from then on another key, or none, opens nothing of the kind, and a person decides. Pure: the
//! caller verifies signatures, and keeps the records.

const std = @import("std");
const assert = std.debug.assert;

pub const DeviceIdentity = @This();

state: State = .unknown,
/// Counts what people have decided about the device: an identity is worth nothing once the desired
/// state has another number.
revision: u64 = 0,
/// Of another key than the known one, or of one that waits for approval: the latest.
claimed: ?Fingerprint = null,
/// The key was accepted here, and the desired state does not have it yet: whoever forgets it would
/// accept another one.
is_only_here: bool = false,

/// SHA-256 of the public key.
pub const Fingerprint = [32]u8;

pub const State = union(enum) {
    /// Nothing was decided.
    unknown,
    /// Nothing but this key is this device.
    known: Fingerprint,
    /// A person has decided that this device has no key.
    keyless,
};

/// What a HELLO claims; its proof was valid.
pub const Claim = union(enum) {
    /// It carries no signature: the device has no TPM, or does not use it.
    none,
    /// Its signature does not verify.
    forged,
    signed: Fingerprint,
};

/// The choice of a collection.
pub const Policy = struct {
    enrolment: enum { first_boot, approval } = .first_boot,
    without_key: WithoutKey = .shared_only,
};

pub const WithoutKey = enum {
    /// A MAC address suffices for everything.
    everything,
    /// What is not private.
    shared_only,
    refuse,
};

pub const Access = enum {
    refused,
    /// Shared versions, with write caches that end with the boot.
    shared,
    /// Private images, persistent write caches, maintenance versions and secrets as well.
    private,
};

/// For the dashboard: whether the device is known, and why not. Names are those of boot reports.
pub const Label = enum {
    key_known,
    key_waits,
    key_changed,
    key_missing,
    no_key,
    signature_invalid,
};

pub const Decision = struct {
    access: Access,
    label: Label,
    /// A person has to decide.
    is_alarm: bool = false,
    /// The identity has changed: record it before the device is answered.
    is_changed: bool = false,
};

/// A HELLO of a boot token has arrived.
pub fn judge(identity: *DeviceIdentity, policy: Policy, claim: Claim) Decision {
    const before = identity.*;
    var decision: Decision = switch (claim) {
        .forged => .{ .access = .refused, .label = .signature_invalid, .is_alarm = true },
        .none => identity.judgeUnsigned(policy),
        .signed => |key| identity.judgeSigned(policy, key),
    };
    decision.is_changed = !std.meta.eql(before, identity.*);
    assert(decision.access != .private or claim != .forged);
    assert(identity.revision == before.revision);
    // Nothing that a device sends replaces what is known.
    assert(before.state == .unknown or std.meta.eql(before.state, identity.state));
    return decision;
}

fn judgeUnsigned(identity: *const DeviceIdentity, policy: Policy) Decision {
    const access: Access = switch (policy.without_key) {
        .everything => .private,
        .shared_only => .shared,
        .refuse => .refused,
    };
    return switch (identity.state) {
        .unknown => .{ .access = access, .label = .no_key },
        // A person has chosen it for this device, whatever the collection requires of others.
        .keyless => .{ .access = if (access == .private) .private else .shared, .label = .no_key },
        // Leaving out the signature must not open what a wrong one does not.
        .known => .{
            .access = if (policy.without_key == .refuse) .refused else .shared,
            .label = .key_missing,
            .is_alarm = true,
        },
    };
}

fn judgeSigned(identity: *DeviceIdentity, policy: Policy, key: Fingerprint) Decision {
    switch (identity.state) {
        .known => |known| if (std.mem.eql(u8, &known, &key))
            return .{ .access = .private, .label = .key_known },
        .unknown => if (policy.enrolment == .first_boot) {
            identity.state = .{ .known = key };
            identity.claimed = null;
            return .{ .access = .private, .label = .key_known };
        },
        .keyless => {},
    }
    identity.claimed = key;
    const waits = identity.state == .unknown;
    assert(identity.claimed != null);
    return .{
        .access = if (policy.without_key == .refuse) .refused else .shared,
        .label = if (waits) .key_waits else .key_changed,
        .is_alarm = !waits,
    };
}

/// What a person decides.
pub const Order = union(enum) {
    /// This key is the device's.
    approve: Fingerprint,
    /// The device has no key.
    without_key,
    /// It is as if it had never booted.
    forget,
};

/// Returns whether the identity has changed.
pub fn apply(identity: *DeviceIdentity, order: Order) bool {
    const before = identity.*;
    identity.* = switch (order) {
        .approve => |key| .{ .state = .{ .known = key } },
        .without_key => .{ .state = .keyless },
        .forget => .{},
    };
    identity.revision = before.revision;
    assert(identity.claimed == null);
    return !std.meta.eql(before, identity.*);
}

/// What the desired state says of a device.
pub const Stated = struct { state: State, revision: u64 };

/// Notes whether this edge alone knows the key; null: the state does not list the device.
pub fn noteStated(identity: *DeviceIdentity, stated: ?Stated) void {
    const said = stated orelse Stated{ .state = .keyless, .revision = 0 };
    identity.is_only_here = identity.state == .known and said.state == .unknown and
        identity.revision == said.revision;
    assert(!identity.is_only_here or identity.state == .known);
}

/// A desired state has arrived. What it says of the device replaces what this edge knows; if it
/// says nothing, a key that was accepted here stays, unless a person has decided since. Returns
/// whether the identity has changed.
pub fn follow(identity: *DeviceIdentity, stated: Stated) bool {
    const before = identity.*;
    const is_decided = identity.revision != stated.revision;
    if (is_decided) identity.* = .{ .revision = stated.revision };
    if (stated.state != .unknown) identity.state = stated.state;
    if (identity.claimed) |claimed| if (identity.state == .known)
        if (std.mem.eql(u8, &claimed, &identity.state.known)) {
            identity.claimed = null;
        };
    assert(identity.revision == stated.revision);
    assert(stated.state == .unknown or std.meta.eql(identity.state, stated.state));
    return !std.meta.eql(before, identity.*);
}
