//! The keys in the devices' TPMs, and what may be opened by them, as the account of the invariants
//! knows it: what a HELLO proves is verified here once more, and judged by the plan of the control
//! plane and by what each edge was seen to accept. Software keys stand in for TPMs; they sign what
//! TPMs sign.

const std = @import("std");
const base = @import("base");
const core = @import("core");
const wire = @import("wire").stream;
const ControlPlane = @import("control_plane.zig");
const assert = std.debug.assert;

pub const KeyPair = base.ecdsa_p256.KeyPair;
pub const Fingerprint = core.site.DeviceIdentity.Fingerprint;
const Claim = core.site.DeviceIdentity.Claim;

/// Every third device has no TPM, another third has its TPM cleared now and then. `number` counts
/// how often it was cleared.
pub fn pairOf(seed: u64, device: u8, number: u32) ?KeyPair {
    if (device % 3 == 2) return null;
    var bytes: [32]u8 = @splat(0x4b);
    std.mem.writeInt(u64, bytes[0..8], seed, .big);
    std.mem.writeInt(u32, bytes[8..12], number, .big);
    bytes[12] = device;
    return KeyPair.generateDeterministic(bytes) catch unreachable;
}

/// The attacker's own TPM.
pub fn attackersPair(seed: u64) KeyPair {
    var bytes: [32]u8 = @splat(0x61);
    std.mem.writeInt(u64, bytes[0..8], seed, .big);
    return KeyPair.generateDeterministic(bytes) catch unreachable;
}

pub fn fingerprintOf(pair: *const KeyPair) Fingerprint {
    return core.stream.device_signature.fingerprintOf(&pair.public_key);
}

/// The HELLOs with a cookie that an edge has received last: the session that one of them opens
/// begins when a thread has opened its layer.
pub const Heard = struct {
    const entries_max = 512;

    entries: [entries_max]Entry = undefined,
    count: u32 = 0,

    const Entry = struct {
        boot_id: base.Uuid,
        nonce: [16]u8,
        from: base.Endpoint,
        claim: Claim,
    };

    pub fn note(heard: *Heard, from: base.Endpoint, hello: *const wire.Hello) void {
        if (hello.kind != .token or std.mem.allEqual(u8, &hello.cookie, 0)) return;
        heard.entries[heard.count % entries_max] = .{
            .boot_id = .fromBytes(hello.boot_id),
            .nonce = hello.client_nonce,
            .from = from,
            .claim = core.stream.device_signature.claimOf(hello),
        };
        heard.count += 1;
    }

    /// Returns the latest claim of this session's HELLO.
    pub fn find(
        heard: *const Heard,
        boot_id: base.Uuid,
        nonce: [16]u8,
        from: base.Endpoint,
    ) ?Claim {
        const kept = @min(heard.count, entries_max);
        for (1..kept + 1) |back| {
            const entry = &heard.entries[(heard.count - back) % entries_max];
            if (!entry.boot_id.eql(boot_id) or !entry.from.eql(from)) continue;
            if (std.mem.eql(u8, &entry.nonce, &nonce)) return entry.claim;
        }
        return null;
    }
};

/// The key that one edge accepted from a device, and by which decision of the control plane.
pub const Accepted = struct { key: ?Fingerprint = null, revision: u64 = 0 };

/// Returns why a session must not have opened what belongs to this device alone; null: it may.
pub fn objection(
    accepted: *Accepted,
    plan: *const ControlPlane.DevicePlan,
    claim: Claim,
) ?[]const u8 {
    if (accepted.revision != plan.key_revision) accepted.* = .{ .revision = plan.key_revision };
    const is_known = plan.key == .known or (plan.key == .unknown and accepted.key != null);
    switch (claim) {
        .forged => return "a wrong signature",
        .none => {
            if (is_known) return "no signature";
            return if (plan.key_policy.isLenient()) null else "no key";
        },
        .signed => |key| {
            const own = switch (plan.key) {
                .known => |known| known,
                .keyless => return "the key of a device that has none",
                .unknown => accepted.key orelse {
                    if (plan.key_policy.needsApproval()) return "a key that nobody has approved";
                    accepted.key = key;
                    return null;
                },
            };
            return if (std.mem.eql(u8, &own, &key)) null else "another key";
        },
    }
}

const testing = std.testing;

test "what was accepted stays until somebody decides, and nothing replaces it" {
    var accepted: Accepted = .{};
    var plan: ControlPlane.DevicePlan = .{ .key_policy = .first };
    const one: Fingerprint = @splat(1);
    try testing.expect(objection(&accepted, &plan, .none) != null);
    try testing.expectEqual(null, objection(&accepted, &plan, .{ .signed = one }));
    try testing.expect(objection(&accepted, &plan, .{ .signed = @splat(2) }) != null);
    try testing.expect(objection(&accepted, &plan, .forged) != null);
    plan.key_policy = .lenient;
    try testing.expect(objection(&accepted, &plan, .none) != null);
    plan.key_revision = 1;
    try testing.expectEqual(null, objection(&accepted, &plan, .none));
    plan.key_policy = .approval;
    try testing.expect(objection(&accepted, &plan, .{ .signed = one }) != null);
    plan.key = .{ .known = one };
    try testing.expectEqual(null, objection(&accepted, &plan, .{ .signed = one }));
    plan.key = .keyless;
    try testing.expect(objection(&accepted, &plan, .{ .signed = one }) != null);
}
