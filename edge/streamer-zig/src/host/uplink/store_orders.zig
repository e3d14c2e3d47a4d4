//! A copy of the store jobs that the desired state orders: it outlives the state that it comes
//! from.

const std = @import("std");
const base = @import("base");
const core = @import("core");

const Order = core.uplink.store_job.Order;

pub const StoreOrders = @This();

arena: std.heap.ArenaAllocator,
orders: []Order,
kept: []const base.Uuid,

pub fn create(
    gpa: std.mem.Allocator,
    orders: []const Order,
    kept: []const base.Uuid,
) error{OutOfMemory}!*StoreOrders {
    const copy = try gpa.create(StoreOrders);
    errdefer gpa.destroy(copy);
    copy.arena = .init(gpa);
    errdefer copy.arena.deinit();
    const arena = copy.arena.allocator();
    copy.kept = try arena.dupe(base.Uuid, kept);
    copy.orders = try arena.dupe(Order, orders);
    for (copy.orders) |*order| {
        order.kind = try arena.dupe(u8, order.kind);
        for ([_]*?[]const u8{
            &order.sourcePath,
            &order.sourceSha256,
            &order.sourceUrl,
            &order.kernelPath,
            &order.initrdPath,
            &order.commandLine,
            &order.layerClass,
            &order.format,
            &order.differenceListSha256,
        }) |text|
            if (text.*) |given| {
                text.* = try arena.dupe(u8, given);
            };
        const names = try arena.alloc([]const u8, order.modules.len);
        for (names, order.modules) |*name, given| name.* = try arena.dupe(u8, given);
        order.modules = names;
        order.sources = try arena.dupe(base.Uuid, order.sources);
        if (order.manifest) |*manifest|
            manifest.root = try arena.dupe(u8, manifest.root);
    }
    return copy;
}

pub fn destroy(copy: *StoreOrders, gpa: std.mem.Allocator) void {
    copy.arena.deinit();
    gpa.destroy(copy);
}
