//! The units that took longest to start, and the chain of those that waited for one another up to
//! the end of the boot, from the output of `systemctl show`: what `systemd-analyze blame` and
//! `critical-chain` print. The last unit of the chain stands first; before each of the others
//! stands one that is ordered after it.

const std = @import("std");
const guest_units = @import("core").boot.guest_units;

pub const properties = "Id,InactiveExitTimestampMonotonic,ActiveEnterTimestampMonotonic," ++
    "InactiveEnterTimestampMonotonic,After";
/// Further ones are not seen.
const units_max = 1024;
/// The end of a boot: the first of these that is active.
const ends = [_][]const u8{ "graphical.target", "multi-user.target" };

pub const UnitChain = @This();

slowest: [guest_units.slowest_max]guest_units.Unit = undefined,
slowest_count: usize = 0,
chain: [guest_units.chain_max]guest_units.Unit = undefined,
chain_count: usize = 0,

const Seen = struct {
    name: []const u8 = "",
    begin_us: u64 = 0,
    active_us: u64 = 0,
    ended_us: u64 = 0,
    after: []const u8 = "",
    is_in_chain: bool = false,

    fn unit(seen: *const Seen) guest_units.Unit {
        // A oneshot unit was never active; a target has no start.
        const end_us = if (seen.active_us >= seen.begin_us) seen.active_us else seen.ended_us;
        const start_us = if (seen.begin_us == 0) end_us else seen.begin_us;
        return .{
            .name = seen.name,
            .start_us = start_us,
            .duration_us = end_us -| start_us,
        };
    }
};

pub const Memory = [units_max]Seen;

/// Units point into `text`. What began after `finish_us` is not a part of the boot.
pub fn parse(text: []const u8, finish_us: u64, memory: *Memory) UnitChain {
    var count: usize = 0;
    var unit: Seen = .{};
    var lines = std.mem.splitScalar(u8, text, '\n');
    while (lines.next()) |line| {
        if (line.len == 0) {
            count = keep(memory, count, unit, finish_us);
            unit = .{};
            continue;
        }
        const key, const value = std.mem.cutScalar(u8, line, '=') orelse continue;
        if (std.mem.eql(u8, key, "Id")) unit.name = value;
        if (std.mem.eql(u8, key, "After")) unit.after = value;
        if (std.mem.eql(u8, key, "InactiveExitTimestampMonotonic"))
            unit.begin_us = parseInstant(value);
        if (std.mem.eql(u8, key, "ActiveEnterTimestampMonotonic"))
            unit.active_us = parseInstant(value);
        if (std.mem.eql(u8, key, "InactiveEnterTimestampMonotonic"))
            unit.ended_us = parseInstant(value);
    }
    count = keep(memory, count, unit, finish_us);
    var found: UnitChain = .{};
    for (memory[0..count]) |*seen| found.rank(seen.unit());
    found.follow(memory[0..count]);
    return found;
}

fn keep(memory: *Memory, count: usize, unit: Seen, finish_us: u64) usize {
    if (count == units_max) return count;
    if (unit.name.len == 0 or unit.name.len > guest_units.name_size_max) return count;
    if (std.mem.startsWith(u8, unit.name, "bootfarm-")) return count;
    if (unit.begin_us == 0 and unit.active_us == 0) return count;
    if (@max(unit.begin_us, 1) > finish_us) return count;
    memory[count] = unit;
    return count + 1;
}

fn rank(found: *UnitChain, unit: guest_units.Unit) void {
    if (unit.duration_us == 0) return;
    var place = found.slowest_count;
    while (place > 0 and found.slowest[place - 1].duration_us < unit.duration_us) place -= 1;
    if (place == found.slowest.len) return;
    if (found.slowest_count < found.slowest.len) found.slowest_count += 1;
    var at = found.slowest_count - 1;
    while (at > place) : (at -= 1) found.slowest[at] = found.slowest[at - 1];
    found.slowest[place] = unit;
}

/// Of the units that one is ordered after, the one that was active last made it wait.
fn follow(found: *UnitChain, units: []Seen) void {
    var next = for (ends) |name| {
        const last = find(units, name) orelse continue;
        if (last.active_us != 0) break last;
    } else return;
    while (found.chain_count < found.chain.len) {
        next.is_in_chain = true;
        found.chain[found.chain_count] = next.unit();
        found.chain_count += 1;
        var latest: ?*Seen = null;
        var names = std.mem.tokenizeScalar(u8, next.after, ' ');
        while (names.next()) |name| {
            const other = find(units, name) orelse continue;
            if (other.is_in_chain or other.active_us == 0) continue;
            // What was active later did not make it wait.
            if (other.active_us > next.active_us) continue;
            if (latest == null or other.active_us > latest.?.active_us) latest = other;
        }
        next = latest orelse return;
    }
}

fn find(units: []Seen, name: []const u8) ?*Seen {
    for (units) |*unit| if (std.mem.eql(u8, unit.name, name)) return unit;
    return null;
}

fn parseInstant(text: []const u8) u64 {
    const instant = std.fmt.parseInt(u64, text, 10) catch return 0;
    return if (instant > std.time.us_per_day) 0 else instant;
}

const testing = std.testing;
const base = @import("base");
const damage = @import("damaged.zig").damage;
const shown =
    "Id=graphical.target\nInactiveExitTimestampMonotonic=900\nActiveEnterTimestampMonotonic=900\n" ++
    "InactiveEnterTimestampMonotonic=0\nAfter=gdm.service multi-user.target late.service\n\n" ++
    "Id=multi-user.target\nInactiveExitTimestampMonotonic=700\nActiveEnterTimestampMonotonic=700\n" ++
    "After=ssh.service basic.target\n\n" ++
    "Id=gdm.service\nInactiveExitTimestampMonotonic=300\nActiveEnterTimestampMonotonic=850\n" ++
    "After=plymouth.service absent.service graphical.target\n\n" ++
    "Id=plymouth.service\nInactiveExitTimestampMonotonic=100\nActiveEnterTimestampMonotonic=0\n" ++
    "InactiveEnterTimestampMonotonic=290\nAfter=\n\n" ++
    "Id=basic.target\nInactiveExitTimestampMonotonic=90\nActiveEnterTimestampMonotonic=90\n\n" ++
    "Id=late.service\nInactiveExitTimestampMonotonic=950\nActiveEnterTimestampMonotonic=990\n\n" ++
    "Id=bootfarm-ready.service\nInactiveExitTimestampMonotonic=9\nActiveEnterTimestampMonotonic=800\n";

test "the chain follows what was active last before each unit, and blame has the slowest first" {
    var memory: Memory = undefined;
    const found: UnitChain = .parse(shown, 920, &memory);
    const chain = [_]guest_units.Unit{
        .{ .name = "graphical.target", .start_us = 900, .duration_us = 0 },
        .{ .name = "gdm.service", .start_us = 300, .duration_us = 550 },
    };
    try testing.expectEqualDeep(
        @as([]const guest_units.Unit, &chain),
        found.chain[0..found.chain_count],
    );
    const slowest = [_]guest_units.Unit{
        .{ .name = "gdm.service", .start_us = 300, .duration_us = 550 },
        .{ .name = "plymouth.service", .start_us = 100, .duration_us = 190 },
    };
    try testing.expectEqualDeep(
        @as([]const guest_units.Unit, &slowest),
        found.slowest[0..found.slowest_count],
    );
}

test "no output crashes the parser, and units in a circle end" {
    var prng: base.Prng = .init(6);
    var memory: Memory = undefined;
    var text: [shown.len]u8 = undefined;
    for (0..5000) |_| {
        @memcpy(&text, shown);
        for (0..10) |_| damage(&prng, &text, "=\n.0I");
        const found: UnitChain = .parse(&text, prng.below(2000), &memory);
        for (found.chain[0..found.chain_count]) |*unit| try testing.expect(unit.name.len > 0);
    }
    const circle =
        "Id=multi-user.target\nActiveEnterTimestampMonotonic=9\nAfter=a.service\n\n" ++
        "Id=a.service\nActiveEnterTimestampMonotonic=9\nAfter=multi-user.target a.service\n";
    const found: UnitChain = .parse(circle, 20, &memory);
    try testing.expectEqual(2, found.chain_count);
}
