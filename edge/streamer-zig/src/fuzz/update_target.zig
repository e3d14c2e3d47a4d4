//! Fuzzes release metadata that are correctly signed and wrong inside, and damaged files. Whatever
//! a thief of all keys but the root's sends, an update ends within its bounds, and what it keeps
//! can begin the next one.

const std = @import("std");
const base = @import("base");
const core = @import("core");
const fuzz_case = @import("case.zig");
const Case = fuzz_case.Case;
const Violation = fuzz_case.Violation;
const Client = core.update.Client;
const Ed25519 = base.Ed25519;

/// One key of all roles; its identifier is its name.
const key_id = "k";
const now_s = 1795003600;
const expires = "\"expires\":\"2027-01-01T00:00:00Z\",\"spec_version\":\"1.0.31\",\"version\":";

const root_head = "\"_type\":\"root\",\"consistent_snapshot\":true," ++ expires ++ "1," ++
    "\"keys\":{\"k\":{\"keytype\":\"ed25519\",\"scheme\":\"ed25519\",\"keyval\":{\"public\":\"";
const role_text = "{\"keyids\":[\"k\"],\"threshold\":1}";
const root_tail = "\"}}},\"roles\":{\"root\":" ++ role_text ++ ",\"timestamp\":" ++ role_text ++
    ",\"snapshot\":" ++ role_text ++ ",\"targets\":" ++ role_text ++ "}";
const timestamp_text = "\"_type\":\"timestamp\"," ++ expires ++ "7,\"meta\":{\"snapshot.json\":" ++
    "{\"version\":5}}";
const snapshot_text = "\"_type\":\"snapshot\"," ++ expires ++ "5,\"meta\":{\"targets.json\":" ++
    "{\"version\":3},\"a.json\":{\"version\":1}}";
const targets_text = "\"_type\":\"targets\"," ++ expires ++ "3,\"targets\":{\"a/b\":{" ++
    "\"length\":3," ++
    "\"hashes\":{\"sha256\":\"ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad\"}," ++
    "\"custom\":{\"\\u00e9\":[null,true,-1,{}]}}}";

pub fn client(case: *Case) Violation!bool {
    const pair = Ed25519.KeyPair.generateDeterministic(@splat(9)) catch unreachable;
    const public = std.fmt.bytesToHex(pair.public_key.toBytes(), .lower);
    const root_text = root_head ++ public ++ root_tail;
    const root = sign(case, &pair, root_text) orelse unreachable;
    var update = Client.begin(case.gpa, .{ .root = root }, now_s) catch unreachable;
    const is_done = try run(case, &update, &pair, root_text);
    var next = Client.begin(case.gpa, update.stored, now_s) catch
        return fuzz_case.violated("what an update keeps begins the next one");
    next.receive(null) catch
        return fuzz_case.violated("a root that was kept has not expired");
    return is_done;
}

fn run(
    case: *Case,
    update: *Client,
    pair: *const Ed25519.KeyPair,
    root_text: []const u8,
) Violation!bool {
    var buffer: [Client.name_size_max]u8 = undefined;
    var count: u32 = 0;
    while (update.request(&buffer)) |request| : (count += 1) {
        try fuzz_case.expect(count < 4 + Client.roots_max, "an update asks for few files");
        const text = switch (update.step) {
            .root => root_text,
            .timestamp => timestamp_text,
            .snapshot => snapshot_text,
            .targets => targets_text,
            .done, .refused => unreachable,
        };
        const is_absent = update.step == .root and case.prng.chance(3, 4);
        const file = if (is_absent) null else makeFile(case, pair, text);
        const size_max: usize = @intCast(request.size_max);
        const given = if (file) |bytes| bytes[0..@min(bytes.len, size_max + 1)] else null;
        update.receive(given) catch |err| {
            try fuzz_case.expect(err != error.OutOfMemory, "small files need little memory");
            try fuzz_case.expect(update.request(&buffer) == null, "a refusal ends the update");
            return false;
        };
    }
    if (update.target("a/b")) |target| {
        var path: [Client.request_path_size_max]u8 = undefined;
        const path_size = target.requestPath(&path, true).len;
        try fuzz_case.expect(path_size >= 64, "a target is requested by its hash");
    }
    return true;
}

/// A time that the control plane has not signed is no time.
pub fn time(case: *Case) Violation!bool {
    const pair = Ed25519.KeyPair.generateDeterministic(@splat(9)) catch unreachable;
    const nonce: core.update.signed_time.Nonce = @splat(case.byte());
    const nonce_text = core.uplink.key_text.write(nonce);
    const unix_ms = case.prng.nextU64();
    var line: [100]u8 = undefined;
    const signed = std.mem.print(&line, "bootfarm-time-v1\n{s}\n{d}\n", .{
        &nonce_text, unix_ms,
    }) catch unreachable;
    var signature: [88]u8 = undefined;
    _ = std.base64.standard.Encoder.encode(&signature, &pair.sign(signed).toBytes());
    var buffers: [2][100]u8 = undefined;
    @memcpy(buffers[0][0..nonce_text.len], &nonce_text);
    @memcpy(buffers[1][0..signature.len], &signature);
    const damaged = case.prng.below(4);
    const answer: core.update.signed_time.Answer = .{
        .nonce = if (damaged == 1) case.mutate(&buffers[0], nonce_text.len) else &nonce_text,
        .unixMs = if (damaged == 2) case.prng.nextU64() else unix_ms,
        .signature = if (damaged == 3) case.mutate(&buffers[1], signature.len) else &signature,
    };
    const key = pair.public_key.toBytes();
    const found_s = core.update.signed_time.verify(&answer, &nonce, key) catch {
        try fuzz_case.expect(damaged != 0, "a signed time is accepted");
        return false;
    };
    try fuzz_case.expect(found_s == unix_ms / 1000, "the signed time is the one that counts");
    return true;
}

/// A file with the right signature over what may be damaged, or damaged afterwards.
fn makeFile(case: *Case, pair: *const Ed25519.KeyPair, text: []const u8) []const u8 {
    const buffer = case.gpa.alloc(u8, 4 * text.len) catch unreachable;
    @memcpy(buffer[0..text.len], text);
    const is_whole = case.prng.chance(3, 4);
    const body = if (is_whole) buffer[0..text.len] else case.mutate(buffer, text.len);
    const file = sign(case, pair, body) orelse return body;
    if (case.prng.chance(7, 8)) return file;
    return case.mutate(file, file.len);
}

/// Returns null if the fields have no canonical form to sign.
fn sign(case: *Case, pair: *const Ed25519.KeyPair, fields: []const u8) ?[]u8 {
    const object = std.mem.concat(case.gpa, u8, &.{ "{", fields, "}" }) catch unreachable;
    const value = core.update.canonical_json.parse(case.gpa, object) catch return null;
    const canonical = core.update.canonical_json.encode(case.gpa, &value) catch return null;
    const signature = std.fmt.bytesToHex(pair.sign(canonical).toBytes(), .lower);
    return std.mem.concat(case.gpa, u8, &.{
        "{\"signatures\":[{\"keyid\":\"" ++ key_id ++ "\",\"sig\":\"",
        &signature,
        "\"}],\"signed\":",
        object,
        "}",
    }) catch unreachable;
}
