//! The end of a machine whose disk is lost for good: no edge resumes its session, or its writes are
//! gone. Nothing that runs on it can read any more, so it restarts by itself after a delay, unless
//! the kernel's command line says `bootfarm.lost=wait`. Pure: the caller restarts the machine, and
//! keeps the state for the process that takes over from it.

const std = @import("std");
const assert = std.debug.assert;

pub const LostDisk = @This();

/// When the machine restarts; null: a person has to restart it.
restart_at_us: ?u64,

/// What a machine does when its disk is lost.
pub const Policy = union(enum) {
    /// Restart after this delay: whoever is at the machine can read why.
    restart_after_s: u32,
    wait,

    pub const default: Policy = .{ .restart_after_s = 60 };

    /// Parses the text behind `word`: `wait`, `restart`, or `restart,SECONDS`. Null: none of them.
    pub fn parse(text: []const u8) ?Policy {
        if (std.mem.eql(u8, text, "wait")) return .wait;
        if (std.mem.eql(u8, text, "restart")) return default;
        const digits = std.mem.cutPrefix(u8, text, "restart,") orelse return null;
        for (digits) |digit| if (!std.ascii.isDigit(digit)) return null;
        const delay_s = std.fmt.parseInt(u32, digits, 10) catch return null;
        if (delay_s < delay_s_min or delay_s > delay_s_max) return null;
        return .{ .restart_after_s = delay_s };
    }
};

pub const word = "bootfarm.lost=";
/// Fewer would hide the reason from whoever looks at the console.
const delay_s_min = 5;
const delay_s_max = 24 * 60 * 60;

/// The disk was lost now.
pub fn init(policy: Policy, now_us: u64) LostDisk {
    return .{ .restart_at_us = switch (policy) {
        .restart_after_s => |delay_s| at: {
            assert(delay_s >= delay_s_min);
            assert(delay_s <= delay_s_max);
            break :at now_us + @as(u64, delay_s) * std.time.us_per_s;
        },
        .wait => null,
    } };
}

/// Returns true if the machine is to restart now.
pub fn isDue(lost: *const LostDisk, now_us: u64) bool {
    return now_us >= lost.restart_at_us orelse return false;
}

const testing = std.testing;

test "a machine restarts after the delay, and not before" {
    const lost: LostDisk = .init(.default, 1000);
    try testing.expect(!lost.isDue(1000));
    try testing.expect(!lost.isDue(1000 + 60 * std.time.us_per_s - 1));
    try testing.expect(lost.isDue(1000 + 60 * std.time.us_per_s));
}

test "a machine that waits never restarts by itself" {
    const lost: LostDisk = .init(.wait, 1000);
    try testing.expect(!lost.isDue(std.math.maxInt(u64)));
}

test "a policy is one of three forms, with a delay from five seconds to a day" {
    try testing.expectEqual(Policy.wait, Policy.parse("wait").?);
    try testing.expectEqual(Policy{ .restart_after_s = 60 }, Policy.parse("restart").?);
    try testing.expectEqual(Policy{ .restart_after_s = 5 }, Policy.parse("restart,5").?);
    try testing.expectEqual(Policy{ .restart_after_s = 86_400 }, Policy.parse("restart,86400").?);
    for ([_][]const u8{
        "",           "halt",        "restart,",    "restart,4",           "restart,86401",
        "restart,+9", "restart,9s",  "restart,1_0", "restart,99999999999", "wait,9",
        "Restart",    "restart,9,9",
    }) |text| try testing.expectEqual(null, Policy.parse(text));
}
