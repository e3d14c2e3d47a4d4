//! The boot that each power order was bound to, on disk: a restarted edge does not give an order to
//! the boot that the order caused. The edge appends an order when it binds it.

const std = @import("std");
const base = @import("base");
const core = @import("core");
const journal_file = @import("journal.zig");
const sys = @import("../sys.zig");

const PowerOrders = core.site.PowerOrders;

/// Order id and boot id.
const record_size = 32;
const records_max = 4 * PowerOrders.capacity;
const Format = journal_file.Fixed("power-orders", record_size, records_max);
const Journal = journal_file.Journal(Format);

pub const PowerOrderFile = @This();

file: Journal,

pub fn open(dir_fd: i32, orders: *PowerOrders) PowerOrderFile {
    var file: Journal = .open(dir_fd);
    var reader = file.reader();
    while (reader.nextReadable()) |record| orders.restore(.{
        .id = .fromBytes(record[0..16].*),
        .boot_id = .fromBytes(record[16..32].*),
    });
    file.endReading(&reader);
    return .{ .file = file };
}

pub fn close(file: *PowerOrderFile) void {
    file.file.close();
    file.* = undefined;
}

/// `bound` is new in `orders`. Best effort: without the record a restarted edge may give an
/// order that its device has already taken.
pub fn append(
    file: *PowerOrderFile,
    orders: *const PowerOrders,
    bound: PowerOrders.BoundOrder,
) void {
    if (file.file.needsCompaction()) _ = file.file.compact(orders, writeOrders);
    _ = file.file.append(&encode(bound));
}

fn writeOrders(orders: *const PowerOrders, fresh: *Journal.Compaction) sys.Error!void {
    var known = orders.iterate();
    while (known.next()) |bound| try fresh.append(&encode(bound));
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

    fn keep(book: *Book, bound: PowerOrders.BoundOrder) void {
        book.file.append(&book.orders, bound);
    }
};

test "orders keep their boots over a restart, also after a compaction" {
    var tmp = testing.tmpDir(.{});
    defer tmp.cleanup();
    var table: core.boot.Table = try .init(testing.allocator, 4);
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
    book.* = .{};
    book.file = .open(tmp.dir.handle, &book.orders);
    for (0..records_max + 3) |number|
        book.orders.update(&.{testOrder(number)}, &table, book, Book.keep);
    try testing.expectEqual((PowerOrders.capacity + 3) * record_size, book.file.file.end);
    book.file.close();
    book.* = .{};
    book.file = .open(tmp.dir.handle, &book.orders);
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
