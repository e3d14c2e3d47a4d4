//! Tests of `core.site.DeviceIdentity`.

const std = @import("std");
const base = @import("base");
const device_signature = @import("../stream/device_signature.zig");
const DeviceIdentity = @import("device_identity.zig");
const testing = std.testing;
const Decision = DeviceIdentity.Decision;
const Policy = DeviceIdentity.Policy;

const own: DeviceIdentity.Fingerprint = @splat(1);
const other: DeviceIdentity.Fingerprint = @splat(2);
const by_approval: Policy = .{ .enrolment = .approval };

fn expectDecision(expected: Decision, actual: Decision) !void {
    try testing.expectEqualDeep(expected, actual);
}

test "the key of the first boot is remembered and opens everything from then on" {
    var identity: DeviceIdentity = .{};
    try expectDecision(
        .{ .access = .private, .label = .key_known, .is_changed = true },
        identity.judge(.{}, .{ .signed = own }),
    );
    try expectDecision(
        .{ .access = .private, .label = .key_known },
        identity.judge(by_approval, .{ .signed = own }),
    );
}

test "a key of the first boot after a decision stays, too" {
    const forgotten: DeviceIdentity.Stated = .{ .state = .unknown, .revision = 3 };
    var identity: DeviceIdentity = .{ .state = .{ .known = other } };
    try testing.expect(identity.follow(forgotten));
    try testing.expectEqual(.private, identity.judge(.{}, .{ .signed = own }).access);
    try testing.expect(!identity.follow(forgotten));
    try testing.expectEqual(.key_changed, identity.judge(.{}, .{ .signed = other }).label);
    try testing.expectEqual(.private, identity.judge(.{}, .{ .signed = own }).access);
}

test "another key is an alarm and opens nothing private until a person decides" {
    var identity: DeviceIdentity = .{ .state = .{ .known = own } };
    try expectDecision(
        .{ .access = .shared, .label = .key_changed, .is_alarm = true, .is_changed = true },
        identity.judge(.{}, .{ .signed = other }),
    );
    try testing.expectEqual(other, identity.claimed.?);
    try testing.expectEqual(
        .private,
        identity.judge(.{}, .{ .signed = own }).access,
    );
    try testing.expect(identity.apply(.{ .approve = other }));
    try testing.expectEqual(.private, identity.judge(.{}, .{ .signed = other }).access);
    try testing.expectEqual(.key_changed, identity.judge(.{}, .{ .signed = own }).label);
}

test "leaving out the signature of a known device is an alarm, even where a MAC suffices" {
    for (std.enums.values(DeviceIdentity.WithoutKey)) |without_key| {
        var identity: DeviceIdentity = .{ .state = .{ .known = own } };
        const decision = identity.judge(.{ .without_key = without_key }, .none);
        try testing.expect(decision.access != .private);
        try testing.expectEqual(.key_missing, decision.label);
        try testing.expect(decision.is_alarm and !decision.is_changed);
    }
}

test "a key waits for approval where the collection wants it" {
    var identity: DeviceIdentity = .{};
    try expectDecision(
        .{ .access = .shared, .label = .key_waits, .is_changed = true },
        identity.judge(by_approval, .{ .signed = own }),
    );
    try expectDecision(
        .{ .access = .shared, .label = .key_waits },
        identity.judge(by_approval, .{ .signed = own }),
    );
    try testing.expect(identity.apply(.{ .approve = own }));
    try testing.expect(!identity.apply(.{ .approve = own }));
    try testing.expectEqual(.private, identity.judge(by_approval, .{ .signed = own }).access);
}

test "a device without a key gets what its collection chose" {
    for ([_]struct { DeviceIdentity.WithoutKey, DeviceIdentity.Access }{
        .{ .everything, .private },
        .{ .shared_only, .shared },
        .{ .refuse, .refused },
    }) |pair| {
        var identity: DeviceIdentity = .{};
        try expectDecision(
            .{ .access = pair[1], .label = .no_key },
            identity.judge(.{ .without_key = pair[0] }, .none),
        );
    }
}

test "a device that a person has declared keyless boots where others need a key" {
    var identity: DeviceIdentity = .{};
    try testing.expect(identity.apply(.without_key));
    try testing.expectEqual(.shared, identity.judge(.{ .without_key = .refuse }, .none).access);
    const decision = identity.judge(.{}, .{ .signed = own });
    try testing.expectEqual(.key_changed, decision.label);
    try testing.expect(decision.is_alarm);
    try testing.expect(identity.apply(.forget));
    try testing.expectEqual(.private, identity.judge(.{}, .{ .signed = own }).access);
}

test "an invalid signature is refused in every state and changes none" {
    for ([_]DeviceIdentity.State{ .unknown, .{ .known = own }, .keyless }) |state| {
        var identity: DeviceIdentity = .{ .state = state };
        try expectDecision(
            .{ .access = .refused, .label = .signature_invalid, .is_alarm = true },
            identity.judge(.{ .without_key = .everything }, .forged),
        );
        try testing.expectEqualDeep(DeviceIdentity{ .state = state }, identity);
    }
}

test "no sequence of a stranger's claims opens what is private of a known device" {
    var prng: std.Random.DefaultPrng = .init(8);
    const random = prng.random();
    var identity: DeviceIdentity = .{ .state = .{ .known = own } };
    for (0..10_000) |_| {
        const policy: Policy = .{
            .enrolment = random.enumValue(@FieldType(Policy, "enrolment")),
            .without_key = random.enumValue(DeviceIdentity.WithoutKey),
        };
        var key: DeviceIdentity.Fingerprint = undefined;
        random.bytes(&key);
        const claim: DeviceIdentity.Claim = switch (random.uintLessThan(u8, 3)) {
            0 => .none,
            1 => .forged,
            else => .{ .signed = key },
        };
        const decision = identity.judge(policy, claim);
        try testing.expect(decision.access != .private);
        try testing.expect(decision.is_alarm);
        try testing.expectEqualDeep(DeviceIdentity.State{ .known = own }, identity.state);
    }
}

/// The claim of a HELLO that carries this key and signature.
fn claimOf(
    transcript: *const device_signature.Transcript,
    signature: *const base.ecdsa_p256.Signature,
) DeviceIdentity.Claim {
    if (!device_signature.isSigned(transcript, signature)) return .forged;
    return .{ .signed = device_signature.fingerprintOf(&transcript.device_key) };
}

test "a signature opens what is private once, and neither a replay nor another key does" {
    const device: base.ecdsa_p256.KeyPair = try .generateDeterministic(@splat(1));
    const attacker: base.ecdsa_p256.KeyPair = try .generateDeterministic(@splat(2));
    var transcript: device_signature.Transcript = .{
        .boot_id = @splat(1),
        .client_nonce = @splat(2),
        .cookie = @splat(3),
        .client_public = @splat(4),
        .device_key = device.public_key,
        .hello_digest = @splat(5),
    };
    const digest = device_signature.digestOf(&transcript);
    const signature = device.sign(&digest);
    var identity: DeviceIdentity = .{};
    const first = identity.judge(.{}, claimOf(&transcript, &signature));
    try testing.expectEqual(.private, first.access);

    // The edge has made another cookie since.
    transcript.cookie = @splat(9);
    try testing.expectEqual(.refused, identity.judge(.{}, claimOf(&transcript, &signature)).access);
    transcript.device_key = attacker.public_key;
    const own_digest = device_signature.digestOf(&transcript);
    const own_signature = attacker.sign(&own_digest);
    const stranger = identity.judge(.{}, claimOf(&transcript, &own_signature));
    try testing.expectEqual(.shared, stranger.access);
    try testing.expect(stranger.is_alarm);
}

test "the desired state replaces what an edge has accepted, and its silence does not" {
    var identity: DeviceIdentity = .{};
    _ = identity.judge(.{}, .{ .signed = own });
    try testing.expect(!identity.follow(.{ .state = .unknown, .revision = 0 }));
    try testing.expectEqual(own, identity.state.known);
    // Another edge was the first to report a key.
    try testing.expect(identity.follow(.{ .state = .{ .known = other }, .revision = 0 }));
    try testing.expectEqual(.key_changed, identity.judge(.{}, .{ .signed = own }).label);
    try testing.expectEqual(own, identity.claimed.?);
    // A person approves what was claimed.
    try testing.expect(identity.follow(.{ .state = .{ .known = own }, .revision = 1 }));
    try testing.expectEqual(null, identity.claimed);
    try testing.expectEqual(.private, identity.judge(.{}, .{ .signed = own }).access);
}

test "what a person has had forgotten is accepted again at the next boot only" {
    var identity: DeviceIdentity = .{};
    _ = identity.judge(.{}, .{ .signed = own });
    try testing.expect(identity.follow(.{ .state = .unknown, .revision = 1 }));
    try testing.expectEqual(.unknown, std.meta.activeTag(identity.state));
    try testing.expectEqual(.key_waits, identity.judge(by_approval, .{ .signed = other }).label);
    // The same state again keeps what the edge has seen since.
    try testing.expect(!identity.follow(.{ .state = .unknown, .revision = 1 }));
    try testing.expectEqual(other, identity.claimed.?);
    try testing.expect(identity.follow(.{ .state = .keyless, .revision = 2 }));
    const decision = identity.judge(.{ .without_key = .everything }, .none);
    try testing.expectEqual(.private, decision.access);
}
