//! Tests of message.zig with the golden vectors of packages/proto/vectors/uplink-v1.json, which the
//! TypeScript tests read as well.

const std = @import("std");
const base = @import("base");
const desired_state = @import("desired_state.zig");
const key_text = @import("key_text.zig");
const uplink_message = @import("message.zig");

const testing = std.testing;
const Ed25519 = base.Ed25519;

const Key = struct { seedHex: []const u8, publicKey: []const u8 };

const Vectors = struct {
    version: u32,
    edgeId: base.Uuid,
    edgeKey: Key,
    organizationId: base.Uuid,
    organizationKey: Key,
    newEdgeKey: Key,
    edgeKeyStatement: uplink_message.KeyStatement,
    edgeSealKey: struct { secretHex: []const u8, publicKey: []const u8 },
    sealedKeys: struct { siteKey: []const u8, ticketKeys: []const []const u8 },
    requests: []const struct {
        method: []const u8,
        path: []const u8,
        edgeId: []const u8,
        bootEpoch: u64,
        counter: u64,
        body: []const u8 = "",
        /// Replaces a `body` that is no text.
        bodyHex: ?[]const u8 = null,
        signedText: []const u8,
        signature: []const u8,
    },
    states: []const struct {
        name: []const u8,
        verdict: []const u8,
        envelope: desired_state.Envelope,
    },
};

fn load() !std.json.Parsed(Vectors) {
    const parsed = try std.json.parseFromSlice(Vectors, testing.allocator, @embedFile(
        "uplink_vectors_json",
    ), .{
        .ignore_unknown_fields = true,
    });
    try testing.expectEqual(1, parsed.value.version);
    return parsed;
}

test "requests are signed like the golden ones" {
    const parsed = try load();
    defer parsed.deinit();
    const vectors = parsed.value;
    var seed: [32]u8 = undefined;
    _ = try std.fmt.hexToBytes(&seed, vectors.edgeKey.seedHex);
    const key = try Ed25519.KeyPair.generateDeterministic(seed);
    try testing.expectEqualStrings(
        vectors.edgeKey.publicKey,
        &key_text.write(key.public_key.toBytes()),
    );
    try testing.expect(vectors.requests.len >= 5);
    for (vectors.requests) |request| {
        var bytes: [256]u8 = undefined;
        const body =
            if (request.bodyHex) |hex| try std.fmt.hexToBytes(&bytes, hex) else request.body;
        const facts: uplink_message.Facts = .{
            .method = request.method,
            .path = request.path,
            .edge_id = if (std.mem.eql(
                u8,
                request.edgeId,
                "-",
            )) null else try .parse(request.edgeId),
            .boot_epoch = request.bootEpoch,
            .counter = request.counter,
            .body = body,
        };
        var buffer: [512]u8 = undefined;
        var writer: std.Io.Writer = .fixed(&buffer);
        try uplink_message.writeSignedText(&writer, facts);
        try testing.expectEqualStrings(request.signedText, writer.buffered());
        try testing.expectEqualStrings(request.signature, &uplink_message.sign(key, facts));
    }
}

test "states get the verdict of the golden ones" {
    const parsed = try load();
    defer parsed.deinit();
    const vectors = parsed.value;
    var seal_secret: base.x25519.Key = undefined;
    _ = try std.fmt.hexToBytes(&seal_secret, vectors.edgeSealKey.secretHex);
    try testing.expectEqualStrings(
        vectors.edgeSealKey.publicKey,
        &key_text.write(base.x25519.publicOf(&seal_secret)),
    );
    const expected: desired_state.TrustAnchor = .{
        .edge_id = vectors.edgeId,
        .signing_key = try key_text.parse(vectors.organizationKey.publicKey),
        .organization_id = vectors.organizationId,
        .seal_secret = seal_secret,
    };
    for (vectors.states) |state| {
        var arena: std.heap.ArenaAllocator = .init(testing.allocator);
        defer arena.deinit();
        const text = try std.json.Stringify.valueAlloc(arena.allocator(), state.envelope, .{});
        const verdict: []const u8 = if (desired_state.accept(
            arena.allocator(),
            text,
            expected,
        )) |accepted| blk: {
            try testing.expectEqual(1, accepted.devices.len);
            try testing.expectEqualStrings(
                "demo/disk.raw",
                accepted.vdisks[0].versions[0].diskPath,
            );
            const has_orders = std.mem.startsWith(u8, state.name, "with orders");
            try testing.expectEqual(@as(usize, if (has_orders) 2 else 0), accepted.powerOrders.len);
            if (has_orders) {
                try testing.expectEqual(.power_off, accepted.powerOrders[0].order);
                try testing.expectEqual(.restart, accepted.powerOrders[1].order);
                try testing.expect(accepted.powerOrders[0].mac.eql(accepted.devices[0].mac));
            }
            const has_schedules = std.mem.startsWith(u8, state.name, "with schedules");
            try testing.expectEqual(
                @as(usize, if (has_schedules) 2 else 0),
                accepted.schedules.len,
            );
            if (has_schedules) {
                const schedule = &accepted.schedules[0];
                try testing.expectEqualStrings("both", schedule.power);
                try testing.expectEqual(90, schedule.ratePerMinute);
                try testing.expectEqualSlices(u32, &.{0}, schedule.devices);
                try testing.expectEqualSlices(
                    u64,
                    &.{ 1795000060000, 1795086460000 },
                    schedule.instants,
                );
                try testing.expectEqual(1795000000000, accepted.issuedUnixMs);
            }
            const has_versions = std.mem.startsWith(u8, state.name, "with versions");
            try testing.expectEqual(@as(usize, if (has_versions) 2 else 0), accepted.storeJobs.len);
            if (has_versions) try expectGoldenVersions(&accepted);
            if (std.mem.eql(u8, state.name, "with device keys"))
                try expectGoldenDeviceKeys(&accepted);
            if (accepted.sealed != null) {
                const site = &accepted.siteEdges.?;
                try testing.expectEqualStrings(vectors.sealedKeys.siteKey, site.key);
                try testing.expectEqualDeep(vectors.sealedKeys.ticketKeys, site.ticketKeys);
                try testing.expect(std.mem.find(u8, text, site.key) == null);
            }
            break :blk "accepted";
        } else |err| switch (err) {
            error.SignatureInvalid => "signature_invalid",
            error.SchemaTooNew => "schema_too_new",
            error.OtherEdge => "other_edge",
            error.NotOpened => "not_opened",
            error.StateMalformed => "state_malformed",
            else => |other| return other,
        };
        try testing.expectEqualStrings(state.verdict, verdict);
    }
}

fn expectGoldenDeviceKeys(state: *const desired_state.DesiredState) !void {
    const device = &state.devices[0];
    const identity = device.identity();
    try testing.expectEqual(@as([32]u8, @splat(0xab)), identity.state.known);
    try testing.expectEqual(3, identity.revision);
    const policy = state.keyPolicyOf(device);
    try testing.expectEqual(.approval, policy.enrolment);
    try testing.expectEqual(.shared_only, policy.without_key);
    try testing.expectEqual(.first_boot, state.keyPolicies[0].read().enrolment);
    try testing.expectEqual(.everything, state.keyPolicies[0].read().without_key);
}

test "a choice that this edge does not know opens least, and a state without one all" {
    const unknown: desired_state.KeyPolicy = .{ .learn = "by_moon", .without = "half" };
    try testing.expectEqual(.approval, unknown.read().enrolment);
    try testing.expectEqual(.refuse, unknown.read().without_key);
    const parsed = try load();
    defer parsed.deinit();
    var arena: std.heap.ArenaAllocator = .init(testing.allocator);
    defer arena.deinit();
    const text =
        try std.json.Stringify.valueAlloc(arena.allocator(), parsed.value.states[0].envelope, .{});
    const state = try desired_state.accept(arena.allocator(), text, .{
        .edge_id = parsed.value.edgeId,
        .signing_key = try key_text.parse(parsed.value.organizationKey.publicKey),
    });
    try testing.expectEqual(.everything, state.keyPolicyOf(&state.devices[0]).without_key);
    try testing.expectEqual(.unknown, std.meta.activeTag(state.devices[0].identity().state));
}

test "a sealed state is refused by an edge without a key for it" {
    const parsed = try load();
    defer parsed.deinit();
    var arena: std.heap.ArenaAllocator = .init(testing.allocator);
    defer arena.deinit();
    for (parsed.value.states) |state| {
        if (!std.mem.eql(u8, state.name, "with keys sealed to the edge")) continue;
        const a = arena.allocator();
        const text = try std.json.Stringify.valueAlloc(a, state.envelope, .{});
        for ([_]?base.x25519.Key{ null, @splat(9) }) |secret|
            try testing.expectError(error.NotOpened, desired_state.accept(a, text, .{
                .edge_id = parsed.value.edgeId,
                .signing_key = try key_text.parse(parsed.value.organizationKey.publicKey),
                .seal_secret = secret,
            }));
        return;
    }
    return error.TestUnexpectedResult;
}

fn expectGoldenVersions(state: *const desired_state.DesiredState) !void {
    const vdisk = &state.vdisks[0];
    try testing.expectEqualStrings("edge_persistent", vdisk.writeCache.?.class);
    try testing.expectEqual(1 << 30, vdisk.writeCache.?.limitBytes.?);
    try testing.expectEqual(.read_only, vdisk.writeCache.?.full);
    try testing.expectEqual(1795003600000, vdisk.pending.?.atUnixMs);
    const released, const later, const written =
        .{ &vdisk.versions[0], &vdisk.versions[1], &vdisk.versions[2] };
    try testing.expect(vdisk.defaultVersionId.?.eql(released.id));
    try testing.expect(vdisk.overrideVersionId == null);
    try testing.expect(vdisk.pending.?.versionId.eql(later.id));
    try testing.expectEqual(@as([32]u8, @splat(0xab)), released.manifest.?.rootHash());
    try testing.expectEqual(3, released.manifest.?.counter);
    try testing.expect(written.manifest == null);
    try testing.expect(written.layerAboveVersionId.?.eql(released.id));
    try testing.expectEqual(.maintenance, state.devices[0].deviceType);
    try testing.expect(state.devices[0].writes);
    try testing.expect(state.devices[0].versionId.eql(written.id));
    try testing.expectEqualStrings("merge", state.storeJobs[0].kind);
    try testing.expectEqual(4, state.storeJobs[0].number.?);
    try testing.expect(state.storeJobs[0].intoVersionId != null);
    try testing.expectEqualStrings("import", state.storeJobs[1].kind);
    try testing.expectEqualStrings("imports/linux.raw", state.storeJobs[1].sourcePath.?);
}

test "a new key of an edge is stated like the golden one" {
    const parsed = try load();
    defer parsed.deinit();
    const vectors = parsed.value;
    var seed: [32]u8 = undefined;
    _ = try std.fmt.hexToBytes(&seed, vectors.edgeKey.seedHex);
    const key = try Ed25519.KeyPair.generateDeterministic(seed);
    const next = try key_text.parse(vectors.newEdgeKey.publicKey);
    try testing.expectEqualDeep(
        vectors.edgeKeyStatement,
        uplink_message.stateKey(key, vectors.edgeId, next),
    );
}

test "the key that statements lead to is returned, and a retired one signs nothing more" {
    const parsed = try load();
    defer parsed.deinit();
    const vectors = parsed.value;
    var arena: std.heap.ArenaAllocator = .init(testing.allocator);
    defer arena.deinit();
    const pinned = try key_text.parse(vectors.organizationKey.publicKey);
    var reached: desired_state.VerifiedKey = undefined;
    var expected: desired_state.TrustAnchor = .{
        .edge_id = vectors.edgeId,
        .signing_key = pinned,
        .organization_id = vectors.organizationId,
        .reached = &reached,
    };
    var retired: ?[]const u8 = null;
    for (vectors.states) |state| {
        const text = try std.json.Stringify.valueAlloc(arena.allocator(), state.envelope, .{});
        if (state.envelope.keys.len == 0 and retired == null) retired = text;
        if (state.envelope.keys.len < 2 or !std.mem.eql(u8, state.verdict, "accepted")) continue;
        _ = try desired_state.accept(arena.allocator(), text, expected);
        const last = state.envelope.keys[1];
        try testing.expectEqual(try key_text.parse(last.publicKey), reached.key);
        try testing.expect(reached.id.?.eql(last.id));
        // Without the organization only the pinned key is accepted.
        expected.organization_id = null;
        try testing.expectError(
            error.SignatureInvalid,
            desired_state.accept(arena.allocator(), text, expected),
        );
        // Once pinned, it is found again without a statement; a state signed by the first key is
        // refused.
        expected.organization_id = vectors.organizationId;
        expected.signing_key = reached.key;
        _ = try desired_state.accept(arena.allocator(), text, expected);
        try testing.expect(reached.id == null);
        try testing.expectError(error.SignatureInvalid, desired_state.accept(
            arena.allocator(),
            retired.?,
            expected,
        ));
        // Unless that key was named on this machine; if the pinned one leads to the state, it is
        // not used.
        expected.named_key = pinned;
        _ = try desired_state.accept(arena.allocator(), text, expected);
        try testing.expect(!reached.is_named);
        _ = try desired_state.accept(arena.allocator(), retired.?, expected);
        try testing.expect(reached.is_named);
        try testing.expectEqual(pinned, reached.key);
        expected.named_key = @splat(1);
        try testing.expectError(
            error.SignatureInvalid,
            desired_state.accept(arena.allocator(), retired.?, expected),
        );
        return;
    }
    return error.TestUnexpectedResult;
}

test "only a higher pair is accepted" {
    const parsed = try load();
    defer parsed.deinit();
    var arena: std.heap.ArenaAllocator = .init(testing.allocator);
    defer arena.deinit();
    const text =
        try std.json.Stringify.valueAlloc(arena.allocator(), parsed.value.states[0].envelope, .{});
    const key = try key_text.parse(parsed.value.organizationKey.publicKey);
    // The golden state is (1, 6).
    const cases = [_]struct { above: desired_state.Pair, taken: bool }{
        .{ .above = .{ .incarnation = 1, .counter = 5 }, .taken = true },
        .{ .above = .{ .incarnation = 0, .counter = 99 }, .taken = true },
        .{ .above = .{ .incarnation = 1, .counter = 6 }, .taken = false },
        .{ .above = .{ .incarnation = 2, .counter = 0 }, .taken = false },
    };
    for (cases) |case| {
        const result = desired_state.accept(arena.allocator(), text, .{
            .edge_id = parsed.value.edgeId,
            .signing_key = key,
            .above = case.above,
        });
        if (case.taken) _ = try result else try testing.expectError(error.NotHigher, result);
    }
}

test "the largest heartbeat fits" {
    const most = (1 << 53) - 1;
    const peer: uplink_message.HeardPeer =
        .{ .edgeId = .zero, .heardMsAgo = most, .booting = most };
    const store_error: uplink_message.StoreError = .{
        .versionId = .zero,
        .offset = most,
        .length = most,
        .count = most,
        .sinceUnixMs = most,
    };
    const repair: uplink_message.Repair =
        .{ .versionId = .zero, .repaired = most, .failed = most, .lastUnixMs = most };
    const copies: uplink_message.CacheCopies =
        .{ .edgeId = .zero, .count = most, .oldestUnixMs = most };
    const interface: uplink_message.Interface = .{
        // The longest name of an interface.
        .name = .init("enp130s0f0np0v1"),
        .ip = .init(255, 255, 255, 255),
        .prefixLength = 32,
        .mtu = std.math.maxInt(u32),
    };
    const peers: [uplink_message.peers_max]uplink_message.HeardPeer = @splat(peer);
    const errors: [uplink_message.store_errors_max]uplink_message.StoreError = @splat(store_error);
    const repairs: [uplink_message.repairs_max]uplink_message.Repair = @splat(repair);
    const kept: [uplink_message.cache_copies_max]uplink_message.CacheCopies = @splat(copies);
    const interfaces: [uplink_message.interfaces_max]uplink_message.Interface = @splat(interface);
    var buffer: [uplink_message.body_size_max]u8 = undefined;
    const size = uplink_message.encode(uplink_message.Heartbeat{
        .agentVersion = "0.1.0",
        .arch = "x86_64",
        .uptimeMs = most,
        .clockUnixMs = most,
        .devicesBooting = most,
        .reportBacklog = most,
        .sealKey = @splat('A'),
        .state = .{ .incarnation = most, .counter = most },
        .ignored = .{},
        .load = .{
            .streams = most,
            .tftpBytes = most,
            .httpBytes = most,
            .streamBytes = most,
            .reads = most,
            .coldReads = most,
            .coldReadUs = most,
            .processorMs = most,
            .processorBusyMs = most,
            .linkMbps = most,
        },
        .interfaces = &interfaces,
        .peers = &peers,
        .storeErrors = &errors,
        .repairs = &repairs,
        .cacheCopies = &kept,
    }, &buffer).len;
    // The rest is counters, problems and an update, of which there are few.
    const rest_size_max = 2 * 1024;
    const programs_size_max = uplink_message.BootProgram.text_size_max;
    try testing.expect(size + programs_size_max + rest_size_max <= buffer.len);
}

test "what people wait for is news, and what changes all the time is not" {
    const peers = [_]uplink_message.HeardPeer{.{ .edgeId = .zero, .heardMsAgo = 10, .booting = 0 }};
    const said: uplink_message.Heartbeat = .{
        .agentVersion = "0.1.0",
        .arch = "x86_64",
        .uptimeMs = 1,
        .clockUnixMs = 2,
        .devicesBooting = 0,
        .reportBacklog = 5,
        .sealKey = @splat('A'),
        .state = .{ .incarnation = 1, .counter = 2 },
        .ignored = .{},
        .peers = &peers,
    };
    const news = uplink_message.newsOf(&said);
    var same = said;
    same.uptimeMs = 100;
    same.clockUnixMs = 200;
    same.reportBacklog = 7;
    same.load = .{
        .streams = 1,
        .tftpBytes = 2,
        .httpBytes = 3,
        .streamBytes = 4,
        .reads = 5,
        .coldReads = 6,
        .coldReadUs = 7,
    };
    same.ignored.add(.dhcp_truncated);
    same.peers = &.{.{ .edgeId = .zero, .heardMsAgo = 900, .booting = 3 }};
    try testing.expectEqual(news, uplink_message.newsOf(&same));
    var other = said;
    other.devicesBooting = 1;
    try testing.expect(news != uplink_message.newsOf(&other));
    other = said;
    other.state.counter = 3;
    try testing.expect(news != uplink_message.newsOf(&other));
    other = said;
    other.problems = &.{"store_full"};
    try testing.expect(news != uplink_message.newsOf(&other));
    other = said;
    other.reportBacklog = 0;
    try testing.expect(news != uplink_message.newsOf(&other));
    other = said;
    other.peers = &.{};
    try testing.expect(news != uplink_message.newsOf(&other));
}
