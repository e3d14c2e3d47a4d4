//! A copy of the store jobs that the desired state orders: it outlives the state that it comes
//! from.

const std = @import("std");
const core = @import("core");
const Order = core.uplink.store_job.Order;

pub const StoreOrders = @This();

arena: std.heap.ArenaAllocator,
orders: []Order,

pub fn create(gpa: std.mem.Allocator, orders: []const Order) error{OutOfMemory}!*StoreOrders {
    const copy = try gpa.create(StoreOrders);
    errdefer gpa.destroy(copy);
    copy.arena = .init(gpa);
    errdefer copy.arena.deinit();
    const arena = copy.arena.allocator();
    copy.orders = try arena.dupe(Order, orders);
    for (copy.orders) |*order| {
        order.kind = try arena.dupe(u8, order.kind);
        for ([_]*?[]const u8{
            &order.sourcePath,
            &order.kernelPath,
            &order.initrdPath,
            &order.commandLine,
            &order.layerClass,
        }) |text|
            if (text.*) |given| {
                text.* = try arena.dupe(u8, given);
            };
    }
    return copy;
}

pub fn destroy(copy: *StoreOrders, gpa: std.mem.Allocator) void {
    copy.arena.deinit();
    gpa.destroy(copy);
}
