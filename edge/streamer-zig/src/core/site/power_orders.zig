//! Power orders for running devices (`powerOrders` of the desired state, packages/proto/UPLINK.md).
//! An order is bound to the boot that its device was in when the edge first saw the order, and is
//! given to no later one: a device that has started again must not be restarted again. It waits
//! until the device confirms it, or until it disappears from the state. Fixed size; the oldest
//! orders are evicted first. Pure.

const std = @import("std");
const base = @import("base");
const stream = @import("wire").stream;
const desired_state = @import("../uplink/desired_state.zig");
const BootTable = @import("../boot/table.zig");
const assert = std.debug.assert;

pub const PowerOrders = @This();

/// A ring; `next` is the slot that is used next.
bindings: [capacity]Binding = @splat(.{}),
next: u32 = 0,
/// How many of them wait. Each report of each device asks, and mostly there are none.
waiting_count: u32 = 0,

/// Twice as many as a state may hold, so that those of the previous state are known when a late
/// confirmation arrives.
pub const capacity = 2 * desired_state.power_orders_max;

/// The boot that an order was bound to; this has to survive a restart of the edge.
pub const BoundOrder = struct {
    id: base.Uuid = .zero,
    /// Zero if the device was in no boot: the order is dropped.
    boot_id: base.Uuid = .zero,
};

const Binding = struct {
    bound: BoundOrder = .{},
    order: stream.Order = .none,
    state: State = .gone,

    const State = enum { gone, waiting, taken };
};

/// Takes the orders of a new desired state; those that are not in it wait no longer. `keep` gets
/// each new one before it can be given to a device.
pub fn update(
    orders: *PowerOrders,
    wanted: []const desired_state.PowerOrder,
    table: *BootTable,
    context: anytype,
    comptime keep: fn (@TypeOf(context), BoundOrder) void,
) void {
    assert(wanted.len <= desired_state.power_orders_max);
    for (&orders.bindings) |*binding| if (binding.state == .waiting) orders.set(binding, .gone);
    assert(orders.waiting_count == 0);
    for (wanted) |order| {
        const binding = orders.find(order.id) orelse blk: {
            const bound: BoundOrder = .{ .id = order.id, .boot_id = runningBoot(table, order.mac) };
            keep(context, bound);
            break :blk orders.add(bound);
        };
        if (binding.state == .taken or binding.bound.boot_id.eql(.zero)) continue;
        binding.order = switch (order.order) {
            .power_off => .power_off,
            .restart => .restart,
        };
        orders.set(binding, .waiting);
    }
}

/// Restores an order of an earlier process of this edge, from the oldest to the newest.
pub fn restore(orders: *PowerOrders, bound: BoundOrder) void {
    if (bound.id.eql(.zero) or orders.find(bound.id) != null) return;
    _ = orders.add(bound);
}

/// Returns the contents of REPORT_ACK for the device of this boot; the earliest order first.
pub fn waitingFor(orders: *const PowerOrders, boot_id: base.Uuid) stream.ReportAck {
    if (orders.waiting_count == 0) return .{};
    for (0..capacity) |step| {
        const binding = &orders.bindings[(orders.next + step) % capacity];
        if (binding.state != .waiting or !binding.bound.boot_id.eql(boot_id)) continue;
        return .{ .order = binding.order, .order_id = binding.bound.id.bytes };
    }
    return .{};
}

/// The device of this boot confirms an order, possibly again; returns false for one that was never
/// given to it.
pub fn take(orders: *PowerOrders, boot_id: base.Uuid, order_id: base.Uuid) bool {
    if (order_id.eql(.zero)) return false;
    const binding = orders.find(order_id) orelse return false;
    if (!binding.bound.boot_id.eql(boot_id)) return false;
    assert(!binding.bound.id.eql(.zero));
    orders.set(binding, .taken);
    return true;
}

/// Iterates over all known orders, from the oldest to the newest, for the file that keeps them.
pub fn iterate(orders: *const PowerOrders) Iterator {
    return .{ .orders = orders };
}

pub const Iterator = struct {
    orders: *const PowerOrders,
    step: u32 = 0,

    pub fn next(iterator: *Iterator) ?BoundOrder {
        assert(iterator.step <= capacity);
        while (iterator.step < capacity) {
            const binding =
                &iterator.orders.bindings[(iterator.orders.next + iterator.step) % capacity];
            iterator.step += 1;
            if (!binding.bound.id.eql(.zero)) return binding.bound;
        }
        return null;
    }
};

/// Returns the boot that the device is in. Candidates do not count: anybody can have begun one, at
/// several edges, and an order is carried out once.
fn runningBoot(table: *BootTable, mac: base.Mac) base.Uuid {
    var latest: ?BootTable.Ref = null;
    var others = table.iterateOf(mac);
    while (others.next()) |ref| {
        const boot = table.get(ref).?;
        if (!boot.isRunning()) continue;
        if (latest == null or table.isEarlier(latest.?, ref)) latest = ref;
    }
    return table.get(latest orelse return .zero).?.identity.id;
}

fn set(orders: *PowerOrders, binding: *Binding, state: Binding.State) void {
    assert(orders.waiting_count <= capacity);
    if (binding.state == .waiting) orders.waiting_count -= 1;
    if (state == .waiting) orders.waiting_count += 1;
    binding.state = state;
}

fn find(orders: *PowerOrders, id: base.Uuid) ?*Binding {
    for (&orders.bindings) |*binding| if (binding.bound.id.eql(id)) return binding;
    return null;
}

fn add(orders: *PowerOrders, bound: BoundOrder) *Binding {
    assert(orders.next < capacity);
    const binding = &orders.bindings[orders.next];
    orders.next = (orders.next + 1) % capacity;
    orders.set(binding, .gone);
    binding.* = .{ .bound = bound };
    assert(orders.next < capacity);
    return binding;
}

const testing = std.testing;
const Boot = @import("../boot/boot.zig");

/// The device of the boot has a session.
fn testBoot(number: u8, round: u8) Boot {
    var boot: Boot = .init(.{
        .id = .fromRandom(@splat(number * 16 + round)),
        .mac = .{ .bytes = .{ 2, 0xbf, 0, 0, 0, number } },
        .handle = @as(u64, number) * 16 + round,
        .token = @splat(0),
    }, .{ .version_id = .zero }, 0, 0);
    boot.stream_was_open = true;
    return boot;
}

fn orderOf(number: u8, mac: base.Mac, kind: desired_state.PowerOrderKind) desired_state.PowerOrder {
    return .{ .id = .fromRandom(@splat(number)), .deviceId = .zero, .mac = mac, .order = kind };
}

fn countBound(count: *u32, _: BoundOrder) void {
    count.* += 1;
}

test "an order waits for its device's boot until it is confirmed, and for no later boot" {
    var table: BootTable = try .init(testing.allocator, .{ .capacity = 4 });
    defer table.deinit(testing.allocator);
    const first = testBoot(1, 0).identity;
    _ = try table.insert(testBoot(1, 0), 0);
    var orders: PowerOrders = .{};
    var kept: u32 = 0;
    const wanted = [_]desired_state.PowerOrder{
        orderOf(9, first.mac, .restart),
        orderOf(8, first.mac, .power_off),
        orderOf(7, testBoot(2, 0).identity.mac, .power_off),
    };
    for (0..3) |_| orders.update(&wanted, &table, &kept, countBound);
    try testing.expectEqual(3, kept);
    for (0..3) |_| try testing.expectEqual(.restart, orders.waitingFor(first.id).order);
    try testing.expect(orders.take(first.id, wanted[0].id));
    try testing.expectEqual(.power_off, orders.waitingFor(first.id).order);
    const second = testBoot(1, 1).identity;
    _ = try table.insert(testBoot(1, 1), 0);
    _ = try table.insert(testBoot(2, 0), 0);
    orders.update(&wanted, &table, &kept, countBound);
    try testing.expectEqual(.none, orders.waitingFor(second.id).order);
    try testing.expectEqual(.none, orders.waitingFor(testBoot(2, 0).identity.id).order);
    try testing.expect(!orders.take(second.id, wanted[1].id));
    orders.update(wanted[0..1], &table, &kept, countBound);
    try testing.expectEqual(.none, orders.waitingFor(first.id).order);
    try testing.expect(orders.take(first.id, wanted[1].id));
    try testing.expect(!orders.take(first.id, .fromRandom(@splat(99))));
    try testing.expect(!orders.take(first.id, .zero));
}

test "an order is for the boot in which its device has a session, never for a candidate" {
    var orders: PowerOrders = .{};
    var table: BootTable = try .init(testing.allocator, .{ .capacity = 4 });
    defer table.deinit(testing.allocator);
    var bound: u32 = 0;
    const runs = testBoot(1, 0).identity;
    var candidate = testBoot(1, 1);
    candidate.stream_was_open = false;
    _ = try table.insert(candidate, 0);
    try testing.expect(runningBoot(&table, runs.mac).eql(.zero));
    _ = try table.insert(testBoot(1, 0), 0);
    candidate.identity = testBoot(1, 2).identity;
    _ = try table.insert(candidate, 0);
    orders.update(&.{orderOf(7, runs.mac, .restart)}, &table, &bound, countBound);
    try testing.expectEqual(.restart, orders.waitingFor(runs.id).order);
    try testing.expectEqual(.none, orders.waitingFor(candidate.identity.id).order);
}

test "an order keeps its boot across a restart of the edge" {
    var table: BootTable = try .init(testing.allocator, .{ .capacity = 4 });
    defer table.deinit(testing.allocator);
    const first = testBoot(1, 0).identity;
    _ = try table.insert(testBoot(1, 0), 0);
    var orders: PowerOrders = .{};
    var kept: u32 = 0;
    const wanted = [_]desired_state.PowerOrder{orderOf(9, first.mac, .restart)};
    orders.update(&wanted, &table, &kept, countBound);
    _ = try table.insert(testBoot(1, 1), 0);
    var again: PowerOrders = .{};
    var bounds = orders.iterate();
    while (bounds.next()) |bound| again.restore(bound);
    again.update(&wanted, &table, &kept, countBound);
    try testing.expectEqual(1, kept);
    try testing.expectEqual(.restart, again.waitingFor(first.id).order);
    try testing.expectEqual(.none, again.waitingFor(testBoot(1, 1).identity.id).order);
}

test "the oldest orders are evicted first, never those of the current state" {
    var table: BootTable = try .init(testing.allocator, .{ .capacity = 4 });
    defer table.deinit(testing.allocator);
    const first = testBoot(1, 0).identity;
    _ = try table.insert(testBoot(1, 0), 0);
    var orders: PowerOrders = .{};
    var kept: u32 = 0;
    var wanted: [desired_state.power_orders_max]desired_state.PowerOrder = undefined;
    for (0..3) |round| {
        for (&wanted, 0..) |*order, index| {
            order.* = orderOf(1, first.mac, .power_off);
            std.mem.writeInt(u64, order.id.bytes[8..16], round * wanted.len + index + 1, .big);
        }
        orders.update(&wanted, &table, &kept, countBound);
        for (&wanted) |order| {
            try testing.expectEqualSlices(
                u8,
                &order.id.bytes,
                &orders.waitingFor(first.id).order_id,
            );
            try testing.expect(orders.take(first.id, order.id));
        }
    }
    try testing.expectEqual(3 * wanted.len, kept);
}
