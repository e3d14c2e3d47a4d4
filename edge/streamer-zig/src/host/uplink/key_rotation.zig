//! Replaces this edge's key (packages/proto/UPLINK.md, "New keys"), in the uplink's sending thread.
//! At each moment the disk has a key that the control plane accepts, or will accept once it is
//! asked again:
//!
//! 1. `edge.key.next` is created, whole or not at all. 2. A statement of the old key is sent to the
//! control plane, which gives the same answer if it is repeated. 3. The statement is written to
//! `edge.key.statements`, because only the old key could make it again. 4. `edge.key.next` becomes
//! `edge.key`.
//!
//! The next start continues an interrupted rotation. The statements also convince a control plane
//! that was restored from a backup older than them.

const std = @import("std");
const base = @import("base");
const core = @import("core");
const sys = @import("../sys.zig");
const log = @import("../log.zig");
const DataDir = @import("../files/data_dir.zig");
const UplinkClient = @import("client.zig");
const linux = std.os.linux;
const Io = std.Io;
const KeyPair = base.Ed25519.KeyPair;
const uplink_message = core.uplink.message;

const request_timeout_ms = 20_000;
/// Created by `bootfarm-edge rotate-key`.
pub const request_name = "rotate-key";

pub const KeyRotation = @This();

io: Io,
data: *const DataDir,
edge_id: base.Uuid,
mutex: Io.Mutex = .init,
/// The key that signs requests.
current: KeyPair,
next: ?KeyPair = null,
statements: Statements = .empty,
/// The key that a person ordered to be replaced.
ordered: ?[32]u8 = null,
back_off: core.uplink.sender.BackOff = .{},
/// The control plane did not accept the current key, and may have been restored.
is_doubted: bool = false,

const Statements =
    base.BoundedArray(uplink_message.KeyStatement, uplink_message.key_statements_max);

pub fn init(io: Io, data: *const DataDir, edge_id: base.Uuid, current: KeyPair) KeyRotation {
    var rotation: KeyRotation = .{ .io = io, .data = data, .edge_id = edge_id, .current = current };
    rotation.loadStatements();
    rotation.loadNext();
    return rotation;
}

pub fn key(rotation: *KeyRotation) KeyPair {
    rotation.mutex.lockUncancelable(rotation.io);
    defer rotation.mutex.unlock(rotation.io);
    return rotation.current;
}

/// Called by the thread that accepts desired states.
pub fn order(rotation: *KeyRotation, public_key: ?[32]u8) void {
    rotation.mutex.lockUncancelable(rotation.io);
    defer rotation.mutex.unlock(rotation.io);
    rotation.ordered = public_key;
}

/// Called after a request that the control plane refused for its signature.
pub fn doubt(rotation: *KeyRotation) void {
    rotation.is_doubted = rotation.next != null or rotation.statements.count > 0;
}

/// Does what is due now, if anything is.
pub fn step(rotation: *KeyRotation, client: *UplinkClient, now_ms: u64, random: u64) void {
    if (rotation.next == null and rotation.isWanted()) rotation.begin();
    if (rotation.next == null and !rotation.is_doubted) return;
    if (now_ms < rotation.back_off.not_before_ms) return;
    switch (rotation.send(client)) {
        .ok => {
            const is_new = rotation.next != null;
            rotation.finish();
            if (is_new and rotation.next == null)
                log.info("This edge has a new key, and the control plane knows it.", .{});
            rotation.back_off.reset();
            rotation.is_doubted = false;
        },
        .nothing => rotation.back_off.fail(now_ms, random),
        .later => |after_ms| rotation.back_off.wait(now_ms, random, after_ms),
        .refused => |refused| {
            rotation.back_off.fail(now_ms, random);
            // Logged once; it is tried again, because something in between might have answered.
            if (rotation.back_off.failures == 1)
                log.info(
                    "The control plane refused the new key of this edge: {t} ({d}); the old one stays in use.",
                    .{ refused.code, refused.status },
                );
        },
    }
}

fn isWanted(rotation: *KeyRotation) bool {
    if (rotation.data.dir.access(rotation.io, request_name, .{})) return true else |_| {}
    rotation.mutex.lockUncancelable(rotation.io);
    defer rotation.mutex.unlock(rotation.io);
    const ordered = rotation.ordered orelse return false;
    return std.mem.eql(u8, &ordered, &rotation.current.public_key.toBytes());
}

fn begin(rotation: *KeyRotation) void {
    const seed = rotation.data.secret("edge.key.next") catch {
        log.info(
            "A new key of this edge cannot be written to the data directory; the old one stays in use.",
            .{},
        );
        return;
    };
    rotation.next = KeyPair.generateDeterministic(seed) catch null;
}

/// Sends all statements, signed by the newest key.
fn send(rotation: *KeyRotation, client: *UplinkClient) core.uplink.sender.Answer {
    const all = rotation.withNext();
    var arena: std.heap.ArenaAllocator = .init(std.heap.smp_allocator);
    defer arena.deinit();
    var body: [uplink_message.body_size_max]u8 = undefined;
    const text = uplink_message.encode(
        uplink_message.RotateKeyRequest{ .statements = all.constSlice() },
        &body,
    );
    const before = client.key;
    client.key = rotation.next orelse rotation.current;
    defer client.key = before;
    var buffer: [uplink_message.body_size_max]u8 = undefined;
    const result = client.request(.POST, "/edge/v1/rotate-key", text, request_timeout_ms, &buffer);
    return UplinkClient.meaning(arena.allocator(), result);
}

/// Returns the statements, and that of the next key.
fn withNext(rotation: *const KeyRotation) Statements {
    var all = rotation.statements;
    const next = rotation.next orelse return all;
    const text = core.uplink.key_text.write(next.public_key.toBytes());
    const is_there = all.count > 0 and
        std.mem.eql(u8, &all.constSlice()[all.count - 1].newPublicKey, &text);
    if (is_there) return all;
    if (all.count == all.buffer.len) {
        std.mem.copyForwards(
            uplink_message.KeyStatement,
            all.buffer[0 .. all.count - 1],
            all.buffer[1..all.count],
        );
        all.count -= 1;
    }
    all.appendAssumeCapacity(
        uplink_message.stateKey(rotation.current, rotation.edge_id, next.public_key.toBytes()),
    );
    return all;
}

fn finish(rotation: *KeyRotation) void {
    const next = rotation.next orelse return;
    const all = rotation.withNext();
    rotation.writeStatements(&all) catch return;
    const dir = rotation.data.dir.handle;
    _ = sys.check(linux.renameat(dir, "edge.key.next", dir, "edge.key")) catch return;
    _ = linux.fsync(dir);
    rotation.data.dir.deleteFile(rotation.io, request_name) catch {};
    rotation.statements = all;
    rotation.next = null;
    {
        rotation.mutex.lockUncancelable(rotation.io);
        defer rotation.mutex.unlock(rotation.io);
        rotation.current = next;
        rotation.ordered = null;
    }
}

fn writeStatements(rotation: *const KeyRotation, all: *const Statements) sys.Error!void {
    var buffer: [uplink_message.body_size_max]u8 = undefined;
    const text = uplink_message.encode(
        uplink_message.RotateKeyRequest{ .statements = all.constSlice() },
        &buffer,
    );
    try rotation.data.write("edge.key.statements", text);
}

fn loadStatements(rotation: *KeyRotation) void {
    var arena: std.heap.ArenaAllocator = .init(std.heap.smp_allocator);
    defer arena.deinit();
    const text = rotation.data.read(arena.allocator(), "edge.key.statements") catch return;
    const kept =
        uplink_message.parse(uplink_message.RotateKeyRequest, arena.allocator(), text) catch return;
    if (kept.statements.len > rotation.statements.buffer.len) return;
    for (kept.statements) |statement| rotation.statements.appendAssumeCapacity(statement);
}

fn loadNext(rotation: *KeyRotation) void {
    if (rotation.data.dir.access(rotation.io, "edge.key.next", .{})) {
        rotation.begin();
    } else |_| {}
}

const testing = std.testing;

fn testRotation(tmp: *const testing.TmpDir, data: *DataDir) !KeyRotation {
    _ = tmp;
    const seed = try data.secret("edge.key");
    return .init(testing.io, data, .fromRandom(@splat(1)), try KeyPair.generateDeterministic(seed));
}

test "a rotation that was interrupted anywhere continues, and no statement is lost" {
    var tmp = testing.tmpDir(.{});
    defer tmp.cleanup();
    var buffer: [8192]u8 = undefined;
    const size = try tmp.dir.realPath(testing.io, &buffer);
    const path = try std.fmt.bufPrint(buffer[size..], "{s}/data", .{buffer[0..size]});
    var data = try DataDir.open(testing.io, path);
    defer data.close();
    var rotation = try testRotation(&tmp, &data);
    const first = rotation.key().public_key.toBytes();
    try testing.expect(!rotation.isWanted());
    rotation.order(@splat(7));
    try testing.expect(!rotation.isWanted());
    rotation.order(first);
    try testing.expect(rotation.isWanted());
    rotation.begin();
    const next = rotation.next.?.public_key.toBytes();
    // After steps 1 and 2.
    rotation = try testRotation(&tmp, &data);
    try testing.expectEqual(first, rotation.key().public_key.toBytes());
    try testing.expectEqual(next, rotation.next.?.public_key.toBytes());
    const statement = rotation.withNext().constSlice()[0];
    // After step 3.
    try rotation.writeStatements(&rotation.withNext());
    rotation = try testRotation(&tmp, &data);
    try testing.expectEqual(1, rotation.withNext().count);
    rotation.finish();
    // After step 4.
    rotation = try testRotation(&tmp, &data);
    try testing.expectEqual(next, rotation.key().public_key.toBytes());
    try testing.expect(rotation.next == null);
    try testing.expectEqualDeep(statement, rotation.statements.constSlice()[0]);
}

test "of many statements the newest are kept" {
    var tmp = testing.tmpDir(.{});
    defer tmp.cleanup();
    var buffer: [8192]u8 = undefined;
    const size = try tmp.dir.realPath(testing.io, &buffer);
    const path = try std.fmt.bufPrint(buffer[size..], "{s}/data", .{buffer[0..size]});
    var data = try DataDir.open(testing.io, path);
    defer data.close();
    var rotation = try testRotation(&tmp, &data);
    for (0..uplink_message.key_statements_max + 3) |_| {
        rotation.begin();
        rotation.finish();
    }
    rotation = try testRotation(&tmp, &data);
    const kept = rotation.statements.constSlice();
    try testing.expectEqual(uplink_message.key_statements_max, kept.len);
    const newest = core.uplink.key_text.write(rotation.key().public_key.toBytes());
    try testing.expectEqualStrings(&newest, &kept[kept.len - 1].newPublicKey);
    for (kept[1..], kept[0 .. kept.len - 1]) |*later, *earlier|
        try testing.expectEqualStrings(&earlier.newPublicKey, &later.oldPublicKey);
}
