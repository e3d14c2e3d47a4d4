//! Fuzzes desired states that are correctly signed and wrong inside: a control plane with a bug, or
//! of another release, must not crash an edge. Also damaged envelopes, and changes of a state that
//! are made of random edits. An accepted state is applied: every device gets a decision.

const std = @import("std");
const base = @import("base");
const core = @import("core");
const fuzz_case = @import("case.zig");
const Case = fuzz_case.Case;
const Violation = fuzz_case.Violation;
const Ed25519 = base.Ed25519;

const edge_id = "0190f3a0-0000-7000-8000-000000000001";

const well_made =
    \\{"schema":1,"edgeId":"0190f3a0-0000-7000-8000-000000000001","organizationId":"0190f3a0-0000-7000-8000-000000000002",
    \\"siteId":"0190f3a0-0000-7000-8000-000000000003","siteName":"Main \u00e9","incarnation":1,"counter":7,"issuedUnixMs":1,
    \\"unknownDevices":"ignore","vdisks":[{"id":"0190f3a0-0000-7000-8000-000000000004","name":"Linux","versions":[
    \\{"id":"0190f3a0-0000-7000-8000-000000000005","number":1,"sizeBytes":1048576,"diskPath":"demo/1/disk.raw",
    \\"kernelPath":"demo/1/kernel","initrdPath":null,"commandLine":"quiet root=/dev/nbd0",
    \\"manifest":{"root":"q6urq6urq6urq6urq6urq6urq6urq6urq6urq6urq6s=","counter":3}}],
    \\"writeCache":{"class":"edge","limitBytes":1048576,"full":"stop"},
    \\"defaultVersionId":"0190f3a0-0000-7000-8000-000000000005","pending":{"versionId":"0190f3a0-0000-7000-8000-000000000005","atUnixMs":1795003600000}}],"storeJobs":[
    \\{"id":"0190f3a0-0000-7000-8000-000000000008","kind":"merge","number":2}],"devices":[
    \\{"id":"0190f3a0-0000-7000-8000-000000000006","name":"pc","mac":"02:bf:00:00:00:01",
    \\"versionId":"0190f3a0-0000-7000-8000-000000000005","enabled":true}],"powerOns":[
    \\{"id":"0190f3a0-0000-7000-8000-000000000007","deviceId":"0190f3a0-0000-7000-8000-000000000006","mac":"02:bf:00:00:00:01"}]}
;

pub fn reader(case: *Case) Violation!bool {
    const key = Ed25519.KeyPair.generateDeterministic(@splat(9)) catch unreachable;
    var buffer: [2 * well_made.len]u8 = undefined;
    @memcpy(buffer[0..well_made.len], well_made);
    const payload = if (case.prng.chance(1, 8))
        buffer[0..well_made.len]
    else
        case.mutate(&buffer, well_made.len);
    // The API's JSON encoder never sends bytes that are not UTF-8; damaged bytes are the subject of
    // the envelope's case below.
    for (payload) |*byte| byte.* &= 0x7f;
    const envelope = seal(case, key, payload) catch unreachable;
    const text = if (case.prng.chance(1, 4)) case.mutate(envelope, envelope.len) else envelope;
    const state = core.uplink.desired_state.accept(case.gpa, text, .{
        .edge_id = base.Uuid.parse(edge_id) catch unreachable,
        .signing_key = key.public_key.toBytes(),
    }) catch |err| {
        try fuzz_case.expect(err != error.OutOfMemory, "a small state needs little memory");
        return false;
    };
    const policy = core.boot.Policy.init(case.gpa, &state) catch unreachable;
    for (state.devices) |device| switch (policy.decide(device.mac, case.prng.between(0, 1 << 53))) {
        .target => |target| for (target.command_line) |byte|
            try fuzz_case.expect(
                byte >= 0x20 and byte < 0x7f,
                "a command line is one line of printable ASCII",
            ),
        .unknown_device => try fuzz_case.expect(false, "a device that is listed is known"),
        .ignored_device, .disabled, .version_missing => {},
    };
    for (state.vdisks) |*vdisk| for (vdisk.versions) |*version| if (version.manifest) |*manifest| {
        _ = manifest.rootHash();
    };
    return true;
}

const edits_max = 6;

/// A change of the well-made state, signed as what it makes; some are damaged afterwards.
pub fn delta(case: *Case) Violation!bool {
    const key = Ed25519.KeyPair.generateDeterministic(@splat(9)) catch unreachable;
    const former: core.uplink.state_delta.Base = .of(well_made);
    var edits: [edits_max]core.uplink.state_delta.Edit = undefined;
    const count: usize = @intCast(case.prng.between(0, edits_max));
    for (edits[0..count]) |*edit| edit.* = randomEdit(case);
    const payload = applied(case, edits[0..count]);
    const text = sealDelta(case, key, payload orelse well_made, edits[0..count]) catch unreachable;
    const sent = if (case.prng.chance(1, 4)) case.mutate(text, text.len) else text;
    var received: core.uplink.desired_state.Received = undefined;
    _ = core.uplink.desired_state.accept(case.gpa, sent, .{
        .edge_id = base.Uuid.parse(edge_id) catch unreachable,
        .signing_key = key.public_key.toBytes(),
        .base = &former,
        .received = &received,
    }) catch |err| {
        try fuzz_case.expect(err != error.OutOfMemory, "a small change needs little memory");
        return false;
    };
    const made = payload orelse
        return fuzz_case.violated("edits that lie in no order make no state");
    try fuzz_case.expect(
        std.mem.eql(u8, received.envelope.payload, made),
        "an accepted change makes what was signed",
    );
    return true;
}

/// Most of them replace a digit by another one, which keeps the state well made.
fn randomEdit(case: *Case) core.uplink.state_delta.Edit {
    const counter_at = comptime std.mem.find(u8, well_made, "\"counter\":7").? + "\"counter\":".len;
    if (case.prng.chance(3, 4)) return .{ .at = counter_at, .remove = 1, .insert = "8" };
    return .{
        .at = if (case.prng.chance(1, 16)) case.prng.nextU64() else case.prng.below(well_made.len),
        .remove = if (case.prng.chance(1, 16)) case.prng.nextU64() else case.prng.below(8),
        .insert = case.prng.pick([]const u8, &.{ "", "0", "\"", "},{", "x: 1", "1e9" }),
    };
}

/// What the edits make, by another way; null if they do not lie one behind the other.
fn applied(case: *Case, edits: []const core.uplink.state_delta.Edit) ?[]const u8 {
    var out: std.ArrayList(u8) = .empty;
    var rest: []const u8 = well_made;
    for (edits) |*edit| {
        const skipped = std.math.sub(u64, edit.at, well_made.len - rest.len) catch return null;
        if (skipped > rest.len) return null;
        out.appendSlice(case.gpa, rest[0..@intCast(skipped)]) catch return null;
        out.appendSlice(case.gpa, edit.insert) catch return null;
        rest = rest[@intCast(skipped)..];
        if (edit.remove > rest.len) return null;
        rest = rest[@intCast(edit.remove)..];
    }
    out.appendSlice(case.gpa, rest) catch return null;
    return out.items;
}

fn sealDelta(
    case: *Case,
    key: Ed25519.KeyPair,
    payload: []const u8,
    edits: []const core.uplink.state_delta.Edit,
) ![]u8 {
    const digest = core.uplink.state_delta.digestOf(well_made);
    var out: std.Io.Writer.Allocating = .init(case.gpa);
    try std.json.Stringify.value(.{
        .delta = .{ .base = @as([]const u8, &digest), .edits = edits },
        .signature = @as([]const u8, &try signatureText(case, key, payload)),
        .keyId = edge_id,
    }, .{}, &out.writer);
    return out.written();
}

fn signatureText(case: *Case, key: Ed25519.KeyPair, payload: []const u8) ![88]u8 {
    const signed = try std.mem.concat(case.gpa, u8, &.{ "bootfarm-state-v1\n", payload });
    var text: [88]u8 = undefined;
    _ = std.base64.standard.Encoder.encode(&text, &key.sign(signed).toBytes());
    return text;
}

fn seal(case: *Case, key: Ed25519.KeyPair, payload: []const u8) ![]u8 {
    var out: std.Io.Writer.Allocating = .init(case.gpa);
    try std.json.Stringify.value(.{
        .payload = payload,
        .signature = @as([]const u8, &try signatureText(case, key, payload)),
        .keyId = edge_id,
    }, .{}, &out.writer);
    return out.written();
}
