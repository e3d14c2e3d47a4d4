//! Keeps what an edge's disk keeps over a crash: boots as they were last written, leases, orders
//! and the resumption key. What else the edge has in memory is lost.

const std = @import("std");
const base = @import("base");
const core = @import("core");
const Invariants = @import("invariants.zig");
const Mutant = @import("mutants.zig").Mutant;
const assert = std.debug.assert;
const Boot = core.boot.Boot;

pub const Journal = @This();

const RunRecord = core.site.ScheduleRunner.Record;

const leases_max = 128;

/// In the order in which the boots began.
boots: []Boot,
boot_count: u32 = 0,
leases: [leases_max]core.dhcp.Leases.Record = undefined,
lease_count: u32 = 0,
leases_at_us: u64 = 0,
lease_change_count: u64 = 0,
resumption_key: [32]u8,
orders: [Invariants.orders_max]core.site.PowerOrders.BoundOrder = undefined,
order_count: u32 = 0,
/// Records of schedules' runs.
runs: std.ArrayList(RunRecord) = .empty,
/// Those that ended with a process.
lost_runs: std.ArrayList(RunRecord) = .empty,
gpa: std.mem.Allocator,

/// Boots of devices that the attacker invents: what the limit of unregistered devices lets through
/// in a run.
const invented_max = 1024;

pub fn init(gpa: std.mem.Allocator, resumption_key: [32]u8) error{OutOfMemory}!Journal {
    return .{
        .boots = try gpa.alloc(Boot, Invariants.boots_max + invented_max),
        .resumption_key = resumption_key,
        .gpa = gpa,
    };
}

pub fn deinit(journal: *Journal, gpa: std.mem.Allocator) void {
    gpa.free(journal.boots);
    journal.runs.deinit(gpa);
    journal.lost_runs.deinit(gpa);
    journal.* = undefined;
}

pub fn write(journal: *Journal, boot: *const Boot) void {
    for (journal.boots[0..journal.boot_count]) |*kept| if (kept.identity.id.eql(boot.identity.id)) {
        kept.* = boot.*;
        return;
    };
    // The invariants have as many slots for devices, and report the overflow first.
    if (journal.boot_count == journal.boots.len) return;
    journal.boots[journal.boot_count] = boot.*;
    journal.boot_count += 1;
}

/// Removes a boot that failed over to another edge.
pub fn remove(journal: *Journal, id: base.Uuid) void {
    const kept = journal.boots[0..journal.boot_count];
    for (kept, 0..) |*boot, index| if (boot.identity.id.eql(id)) {
        std.mem.copyForwards(Boot, kept[index .. kept.len - 1], kept[index + 1 ..]);
        journal.boot_count -= 1;
        return;
    };
}

/// Loads the boots of the previous process. Boots that do not fit are left out, as by the host.
pub fn load(journal: *const Journal, table: *core.boot.Table, now_us: u64, mutant: Mutant) void {
    if (mutant == .forget_journal) return;
    for (journal.boots[0..journal.boot_count]) |kept| {
        var boot = kept;
        boot.onRestart(now_us);
        if (mutant == .forget_revision) boot.revision = 0;
        _ = table.insert(boot, now_us) catch continue;
    }
}

/// Writes a record of a schedule's run.
pub fn writeRun(journal: *Journal, record: RunRecord) void {
    journal.runs.append(journal.gpa, record) catch @panic("no memory");
}

/// A process ended before it was written.
pub fn loseRun(journal: *Journal, record: RunRecord) void {
    journal.lost_runs.append(journal.gpa, record) catch @panic("no memory");
}

/// Returns whether a restarted edge knows that the run began.
pub fn hasBegun(journal: *const Journal, key: core.site.ScheduleRunner.RunKey) bool {
    for (journal.runs.items) |record|
        if (record == .begun and record.begun.key.eql(key)) return true;
    return false;
}

pub fn loadRuns(
    journal: *const Journal,
    runner: *core.site.ScheduleRunner,
    mutant: Mutant,
) void {
    if (mutant == .forget_schedules) return;
    for (journal.runs.items) |record| runner.restore(record);
}

/// Writes a new power order.
pub fn writeOrder(journal: *Journal, bound: core.site.PowerOrders.BoundOrder) void {
    // The invariants have as many slots, and report the overflow first.
    if (journal.order_count == journal.orders.len) return;
    journal.orders[journal.order_count] = bound;
    journal.order_count += 1;
}

pub fn loadOrders(journal: *const Journal, orders: *core.site.PowerOrders, mutant: Mutant) void {
    if (mutant == .forget_orders) return;
    for (journal.orders[0..journal.order_count]) |bound| orders.restore(bound);
}

pub fn writeLeases(journal: *Journal, leases: *const core.dhcp.Leases, now_us: u64) void {
    if (leases.change_count == journal.lease_change_count) return;
    journal.lease_change_count = leases.change_count;
    journal.leases_at_us = now_us;
    journal.lease_count = 0;
    var iterator = leases.dump(now_us);
    while (iterator.next()) |record| {
        assert(journal.lease_count < leases_max);
        journal.leases[journal.lease_count] = record;
        journal.lease_count += 1;
    }
}

pub fn loadLeases(journal: *Journal, leases: *core.dhcp.Leases, now_us: u64, mutant: Mutant) void {
    journal.lease_change_count = leases.change_count;
    if (mutant == .forget_leases) return;
    for (journal.leases[0..journal.lease_count]) |record| {
        var aged = record;
        aged.remaining_us -|= now_us - journal.leases_at_us;
        _ = leases.restore(now_us, &aged);
    }
}
