//! The boot that each power order was bound to, on disk: a restarted edge does not give an order to
//! the boot that the order caused. A worker appends an order when the edge binds it, and then sends
//! the packet that gives it to its device. The latest record of an order counts.

const std = @import("std");
const base = @import("base");
const core = @import("core");
const journal_file = @import("journal.zig");
const journal_writer = @import("journal_writer.zig");
const Worker = @import("../threads/worker.zig");

const PowerOrders = core.site.PowerOrders;

/// Order id and boot id.
const record_size = 32;
const records_max = 4 * PowerOrders.capacity;
const Format = journal_file.Fixed("power-orders", record_size, records_max);
const Writer = journal_writer.JournalWriter(Format);

pub const PowerOrderFile = @This();

writer: Writer,
/// The known orders, for a compaction.
live: [PowerOrders.capacity]Writer.Key = undefined,

/// Restores the orders of earlier processes. `worker` stays the caller's and outlives the file.
pub fn open(
    gpa: std.mem.Allocator,
    worker: *Worker,
    dir_fd: i32,
    orders: *PowerOrders,
) error{OutOfMemory}!PowerOrderFile {
    var writer: Writer = try .init(gpa, worker, .open(dir_fd));
    var reader = writer.file.reader();
    while (reader.nextReadable()) |record| {
        const bound: PowerOrders.BoundOrder = .{
            .id = .fromBytes(record[0..16].*),
            .boot_id = .fromBytes(record[16..32].*),
        };
        orders.restore(bound);
        writer.noteRead(keyOf(bound), record.len, reader.end);
    }
    writer.begin(&reader);
    return .{ .writer = writer };
}

/// Waits until what was appended is in the file.
pub fn close(file: *PowerOrderFile) void {
    file.writer.deinit();
    file.* = undefined;
}

/// `bound` is new in `orders`. Best effort: without the record a restarted edge may give an
/// order that its device has already taken.
pub fn append(
    file: *PowerOrderFile,
    orders: *const PowerOrders,
    bound: PowerOrders.BoundOrder,
) void {
    if (file.writer.needsCompaction()) file.compact(orders);
    _ = file.writer.append(keyOf(bound), &encode(bound));
}

fn compact(file: *PowerOrderFile, orders: *const PowerOrders) void {
    var count: usize = 0;
    var known = orders.iterate();
    while (known.next()) |bound| : (count += 1) file.live[count] = keyOf(bound);
    file.writer.compact(file.live[0..count]);
}

fn keyOf(bound: PowerOrders.BoundOrder) Writer.Key {
    return @bitCast(bound.id.bytes);
}

fn encode(bound: PowerOrders.BoundOrder) [record_size]u8 {
    return bound.id.bytes ++ bound.boot_id.bytes;
}

const testing = std.testing;

fn testOrder(number: u64) core.uplink.desired_state.PowerOrder {
    var id: base.Uuid = .fromRandom(@splat(3));
    std.mem.writeInt(u64, id.bytes[8..16], number, .big);
    return .{ .id = id, .deviceId = .zero, .mac = .{
        .bytes = .{ 2, 0xbf, 0, 0, 0, 1 },
    }, .order = .restart };
}

const Book = struct {
    orders: PowerOrders = .{},
    file: PowerOrderFile = undefined,
    worker: Worker,

    fn open(book: *Book, dir_fd: i32) !void {
        book.orders = .{};
        book.file = try .open(testing.allocator, &book.worker, dir_fd, &book.orders);
    }

    fn keep(book: *Book, bound: PowerOrders.BoundOrder) void {
        book.file.append(&book.orders, bound);
    }
};

test "orders keep their boots over a restart, also after a compaction" {
    var tmp = testing.tmpDir(.{});
    defer tmp.cleanup();
    var table: core.boot.Table = try .init(testing.allocator, .{ .capacity = 4 });
    defer table.deinit(testing.allocator);
    var boot: core.boot.Boot = .init(.{
        .id = .fromRandom(@splat(5)),
        .mac = testOrder(0).mac,
        .handle = 1,
        .token = @splat(0),
    }, .{ .version_id = .zero }, 0, 0);
    boot.stream_was_open = true;
    _ = try table.insert(boot, 0);
    const book = try testing.allocator.create(Book);
    defer testing.allocator.destroy(book);
    book.worker = try .init(testing.io, 1 << 20);
    defer book.worker.deinit();
    try book.open(tmp.dir.handle);
    // A power order waits for its record: the worker has not turned yet.
    for (0..records_max + 3) |number| {
        book.orders.update(&.{testOrder(number)}, &table, book, Book.keep);
        if (number == 0) try testing.expect(!book.file.writer.isWritten());
        if (number % 512 == 0) book.worker.finish();
    }
    book.worker.finish();
    try testing.expect(book.file.writer.isWritten());
    try testing.expect(book.file.writer.file.end < records_max * record_size);
    book.file.close();
    try book.open(tmp.dir.handle);
    defer book.file.close();
    _ = try table.insert(blk: {
        var later = boot;
        later.identity.id = .fromRandom(@splat(6));
        later.identity.handle = 2;
        break :blk later;
    }, 0);
    book.orders.update(&.{testOrder(records_max + 2)}, &table, book, Book.keep);
    try testing.expectEqual(.restart, book.orders.waitingFor(boot.identity.id).order);
}
