//! Tests of cache_snapshot.zig, on a real directory.

const std = @import("std");
const base = @import("base");
const core = @import("core");
const store = @import("store");
const write_caches = @import("write_caches.zig");
const write_caches_test = @import("write_caches_test.zig");
const testing = std.testing;

const LayerSnapshot = store.LayerSnapshot;
const block_size = store.WriteLayer.block_size;
const bootOf = write_caches_test.bootOf;

/// A device with a write cache, and a snapshot that is opened. Must not move.
const Fixture = struct {
    site: write_caches_test.Site,
    boot: core.boot.Boot,
    snapshot: LayerSnapshot,
    name: base.Uuid,

    fn init(fixture: *Fixture) !void {
        fixture.site = try .init(.{ .class = .edge_persistent });
        fixture.boot = bootOf(1, 1);
        _ = fixture.site.grant(&fixture.boot, .token).cache;
        try fixture.write('1');
        fixture.name = fixture.layer().device_id;
        try fixture.open();
    }

    fn deinit(fixture: *Fixture) void {
        fixture.snapshot.close();
        fixture.site.deinit();
    }

    fn open(fixture: *Fixture) !void {
        var buffer: store.files.Name = undefined;
        const dir = store.device_layers.dirOf(fixture.name, &buffer);
        const files = fixture.site.layers.files;
        fixture.snapshot = try .openWritten(testing.allocator, testing.io, files, dir, 0);
    }

    fn layer(fixture: *Fixture) *write_caches.Layer {
        return fixture.site.layers.find(fixture.boot.identity.id).?;
    }

    fn write(fixture: *Fixture, byte: u8) !void {
        try testing.expectEqual(.done, try fixture.site.write(fixture.layer(), byte));
    }

    fn give(fixture: *Fixture, is_over: bool) void {
        fixture.site.io.snapshot_order =
            .{ .layer = fixture.name, .snapshot = &fixture.snapshot, .is_over = is_over };
        fixture.site.io.snapshot_answer = null;
    }

    /// Gives an order, and has it carried out.
    fn order(fixture: *Fixture, is_over: bool) !write_caches.SnapshotAnswer {
        fixture.give(is_over);
        fixture.site.layers.tendSnapshot();
        return fixture.site.io.snapshot_answer orelse error.NoAnswer;
    }

    fn giveOrder(fixture: *Fixture, what: write_caches.Order) !void {
        const of = fixture.layer();
        const ref: core.stream.Server.WriteRef =
            .{ .boot_id = of.boot_id, .session_id = 1, .request_id = 1 };
        try testing.expectEqual(.waits, fixture.site.layers.takeOrder(of, ref, what));
    }

    /// Threads do what there is to do, once; returns how many orders have come to their end.
    fn turn(fixture: *Fixture) u32 {
        const layers, const io = .{ &fixture.site.layers, fixture.site.io };
        layers.beginWorks();
        var count: u32 = 0;
        while (io.ended.count > 0) {
            const work = io.ended.swapRemove(0);
            if (work.kind == .write) {
                while (layers.endOrders(work.layer)) |_| count += 1;
            } else {
                _ = layers.endSync(work.layer);
                layers.release(work.layer);
            }
        }
        return count;
    }

    /// The device has written these bytes, one to each block, and discards all of them.
    fn discardAll(fixture: *Fixture, bytes: []const u8) !void {
        for (bytes, 0..) |byte, number| {
            const block: [block_size]u8 = @splat(byte);
            const offset = number * block_size;
            try fixture.giveOrder(.{ .write = .{ .offset = offset, .bytes = &block } });
        }
        while (fixture.turn() > 0) {}
        try testing.expectEqual(.begun, try fixture.order(false));
        fixture.layer().inner.kept_part_size = block_size;
        const size: u32 = @intCast(bytes.len * block_size);
        try fixture.giveOrder(.{ .discard = .{ .offset = 0, .length = size } });
    }

    /// Expects that a device which reads now finds this at the beginning of its blocks.
    fn expectRead(fixture: *Fixture, bytes: []const u8) !void {
        try testing.expect(!fixture.layer().isWriting());
        for (bytes, 0..) |byte, number| {
            var block: [block_size]u8 = undefined;
            try fixture.layer().inner.read(&block, number * block_size);
            try testing.expect(std.mem.allEqual(u8, &block, byte));
        }
    }

    /// Expects the byte that was written last before the moment.
    fn expectByte(fixture: *Fixture, byte: u8) !void {
        try testing.expect(try fixture.snapshot.read());
        const piece = (try fixture.snapshot.take()).?;
        try testing.expectEqual(0, piece.block);
        try testing.expectEqual(byte, piece.bytes[1023]);
        try testing.expect(!try fixture.snapshot.read());
    }
};

test "a snapshot has what was written before it, and lets its layer go" {
    var fixture: Fixture = undefined;
    try fixture.init();
    defer fixture.deinit();
    try testing.expectEqual(.begun, try fixture.order(false));
    try fixture.write('2');
    try fixture.expectByte('1');
    try testing.expectEqual(.let_go, try fixture.order(true));
    try testing.expectEqual(null, fixture.layer().inner.keeper);
    try fixture.write('3');
    try testing.expectEqual('3', try fixture.site.byteOf(fixture.layer()));
}

test "while a thread writes the layer a snapshot waits, for its begin and for its end" {
    var fixture: Fixture = undefined;
    try fixture.init();
    defer fixture.deinit();
    const layers = &fixture.site.layers;
    const layer = fixture.layer();
    const ref: core.stream.Server.WriteRef =
        .{ .boot_id = layer.boot_id, .session_id = 1, .request_id = 1 };
    for ([_]bool{ false, true }, "23") |is_over, byte| {
        const bytes: [512]u8 = @splat(byte);
        _ = layers.takeOrder(layer, ref, .{ .write = .{ .offset = 512, .bytes = &bytes } });
        layers.beginWorks();
        try testing.expect(layer.isWriting());
        try testing.expectError(error.NoAnswer, fixture.order(is_over));
        try testing.expectEqual(!is_over, layer.inner.keeper == null);
        while (layers.endOrders(layer)) |_| {}
        fixture.site.io.ended = .empty;
        const answer: write_caches.SnapshotAnswer = if (is_over) .let_go else .begun;
        try testing.expectEqual(answer, fixture.site.io.snapshot_answer);
        try testing.expectEqual(is_over, layer.inner.keeper == null);
    }
}

test "the snapshot of a device that restarts goes on, and one of a closed layer ends" {
    var fixture: Fixture = undefined;
    try fixture.init();
    defer fixture.deinit();
    try testing.expectEqual(.begun, try fixture.order(false));
    fixture.boot = bootOf(2, 1);
    _ = fixture.site.grant(&fixture.boot, .token).cache;
    try fixture.write('2');
    try testing.expect(fixture.layer().snapshot == &fixture.snapshot);
    try testing.expect(try fixture.snapshot.read());
    // Another version discards the writes.
    fixture.site.wanted.of_another_version = .discard;
    fixture.boot = bootOf(3, 2);
    _ = fixture.site.grant(&fixture.boot, .token).cache;
    try testing.expectError(error.Ended, fixture.snapshot.take());
    // Its layer is another one.
    try testing.expectEqual(.let_go, try fixture.order(true));
    try testing.expectEqual(.not_open, try fixture.order(false));
}

test "a layer that is lost, or that nobody has open, has no snapshot" {
    var fixture: Fixture = undefined;
    try fixture.init();
    defer fixture.deinit();
    fixture.layer().lose();
    try testing.expectEqual(.lost, try fixture.order(false));
    fixture.name = .fromBytes(@splat(9));
    try testing.expectEqual(.not_open, try fixture.order(false));
    fixture.site.endProcess();
    try testing.expectEqual(.not_open, try fixture.order(false));
    try testing.expectEqual(.let_go, try fixture.order(true));
}

test "reads have their turn between the parts of a discard that a snapshot copies, and nothing overtakes it" {
    var fixture: Fixture = undefined;
    try fixture.init();
    defer fixture.deinit();
    try fixture.discardAll("abcd");
    const block: [block_size]u8 = @splat('x');
    try fixture.giveOrder(.{ .write = .{ .offset = 0, .bytes = &block } });
    try fixture.giveOrder(.flush);
    for ([_][]const u8{ "\x00bcd", "\x00\x00cd", "\x00\x00\x00d" }) |bytes| {
        try testing.expectEqual(0, fixture.turn());
        try fixture.expectRead(bytes);
    }
    try testing.expectEqual(3, fixture.turn());
    try fixture.expectRead("x\x00\x00\x00");
    try testing.expect(try fixture.snapshot.read());
    const piece = (try fixture.snapshot.take()).?;
    for ("abcd", 0..) |byte, number|
        try testing.expectEqual(byte, piece.bytes[number * block_size]);
    try testing.expectEqual(.let_go, try fixture.order(true));
}

test "a snapshot begins with no order that is carried out in part, and its end lets a discard end" {
    var fixture: Fixture = undefined;
    try fixture.init();
    defer fixture.deinit();
    try fixture.discardAll("abcd");
    try testing.expectEqual(0, fixture.turn());
    try testing.expectEqual(.let_go, try fixture.order(true));
    fixture.snapshot.close();
    try fixture.open();
    try testing.expectError(error.NoAnswer, fixture.order(false));
    try testing.expectEqual(1, fixture.turn());
    try testing.expectEqual(.begun, fixture.site.io.snapshot_answer);
    try fixture.expectRead("\x00\x00\x00\x00");
    try testing.expectEqual(.let_go, try fixture.order(true));
}

test "the next boot of a device carries out none of a discard that the one before has begun" {
    var fixture: Fixture = undefined;
    try fixture.init();
    defer fixture.deinit();
    try fixture.discardAll("abcd");
    try testing.expectEqual(0, fixture.turn());
    fixture.boot = bootOf(2, 1);
    _ = fixture.site.grant(&fixture.boot, .token).cache;
    try testing.expectEqual(0, fixture.turn());
    try fixture.expectRead("\x00bcd");
    try fixture.giveOrder(.{ .discard = .{ .offset = block_size, .length = 2 * block_size } });
    try testing.expectEqual(0, fixture.turn());
    try testing.expectEqual(1, fixture.turn());
    try fixture.expectRead("\x00\x00\x00d");
    try testing.expectEqual(.let_go, try fixture.order(true));
}
