//! Which boot each power order was bound to, on disk: a restarted edge does not give an order to the boot that it caused.

const std = @import("std");
const base = @import("base");
const core = @import("core");
const sys = @import("../sys.zig");
const linux = std.os.linux;

const PowerOrders = core.site.PowerOrders;

pub const PowerOrderFile = struct {
    fd: i32,
    count: u64 = 0,

    /// Order id and boot id.
    const record_size = 32;
    /// Beyond this many records the file begins anew with those in memory.
    const count_max = 4 * PowerOrders.capacity;

    pub fn open(dir_fd: i32, orders: *PowerOrders) sys.Error!PowerOrderFile {
        const flags: linux.O = .{ .ACCMODE = .RDWR, .CREAT = true, .CLOEXEC = true };
        const fd: i32 = @intCast(try sys.check(linux.openat(dir_fd, "power-orders", flags, 0o600)));
        var file: PowerOrderFile = .{ .fd = fd };
        var record: [record_size]u8 = undefined;
        while (try sys.readAt(fd, &record, file.count * record_size) == record_size) : (file.count += 1)
            orders.restore(.{ .id = .fromBytes(record[0..16].*), .boot_id = .fromBytes(record[16..32].*) });
        return file;
    }

    /// An order that is new in `orders`. Best effort: without it a restarted edge may give an order that its device has taken.
    pub fn append(file: *PowerOrderFile, orders: *const PowerOrders, bound: PowerOrders.Bound) void {
        if (file.count >= count_max) file.rewrite(orders);
        _ = file.write(bound);
    }

    fn write(file: *PowerOrderFile, bound: PowerOrders.Bound) bool {
        const record = bound.id.bytes ++ bound.boot_id.bytes;
        const rc = linux.pwrite(file.fd, &record, record.len, @intCast(file.count * record_size));
        if ((sys.check(rc) catch 0) != record.len) return false;
        file.count += 1;
        return true;
    }

    fn rewrite(file: *PowerOrderFile, orders: *const PowerOrders) void {
        file.count = 0;
        var known = orders.iterate();
        while (known.next()) |bound| if (!file.write(bound)) break;
        _ = linux.ftruncate(file.fd, @intCast(file.count * record_size));
    }
};

const testing = std.testing;

fn testOrder(number: u64) core.uplink.desired_state.PowerOrder {
    var id: base.Uuid = .fromRandom(@splat(3));
    std.mem.writeInt(u64, id.bytes[8..16], number, .big);
    return .{ .id = id, .deviceId = .zero, .mac = .{ .bytes = .{ 2, 0xbf, 0, 0, 0, 1 } }, .order = .restart };
}

const Book = struct {
    orders: PowerOrders = .{},
    file: PowerOrderFile = undefined,

    fn keep(book: *Book, bound: PowerOrders.Bound) void {
        book.file.append(&book.orders, bound);
    }
};

test "orders keep their boots over a restart, also when the file was begun anew" {
    var tmp = testing.tmpDir(.{});
    defer tmp.cleanup();
    var table: core.boot.Table = try .init(testing.allocator, 4);
    defer table.deinit(testing.allocator);
    const boot: core.boot.Boot = .init(.{
        .id = .fromRandom(@splat(5)),
        .mac = testOrder(0).mac,
        .handle = 1,
        .token = @splat(0),
    }, .{ .version_id = .zero }, 0, 0);
    _ = try table.insert(boot, 0);
    const book = try testing.allocator.create(Book);
    defer testing.allocator.destroy(book);
    book.* = .{};
    book.file = try .open(tmp.dir.handle, &book.orders);
    for (0..PowerOrderFile.count_max + 3) |number|
        book.orders.update(&.{testOrder(number)}, &table, book, Book.keep);
    try testing.expectEqual(PowerOrders.capacity + 3, book.file.count);
    sys.close(book.file.fd);
    book.* = .{};
    book.file = try .open(tmp.dir.handle, &book.orders);
    defer sys.close(book.file.fd);
    _ = try table.insert(blk: {
        var later = boot;
        later.identity.id = .fromRandom(@splat(6));
        later.identity.handle = 2;
        break :blk later;
    }, 0);
    book.orders.update(&.{testOrder(PowerOrderFile.count_max + 2)}, &table, book, Book.keep);
    try testing.expectEqual(.restart, book.orders.waitingFor(boot.identity.id).order);
}
