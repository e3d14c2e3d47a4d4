//! `guest` of a boot's report (packages/proto/UPLINK.md, `guestReport` in src/uplink.ts).

const std = @import("std");
const base = @import("base");
const stream = @import("wire").stream;
const Guest = @import("guest.zig");

const Stringify = std.json.Stringify;

/// JSON numbers stay exact up to here.
pub const number_max = (1 << 53) - 1;

/// Steps of a guest in order of begin. Of equal begins the one said first is first.
pub const SortedSteps = struct {
    buffer: [stream.steps_max]stream.Step = undefined,
    count: u8 = 0,

    pub fn init(guest: *const Guest) SortedSteps {
        var sorted: SortedSteps = .{};
        var steps = guest.steps.view().iterate();
        while (steps.next()) |step| : (sorted.count += 1) sorted.buffer[sorted.count] = step;
        base.sort(stream.Step, sorted.buffer[0..sorted.count], {}, before);
        return sorted;
    }

    pub fn slice(sorted: *const SortedSteps) []const stream.Step {
        return sorted.buffer[0..sorted.count];
    }

    fn before(_: void, a: stream.Step, b: stream.Step) bool {
        return a.start_us < b.start_us;
    }

    /// How many steps go before this one is left out: units before others, short ones before long ones.
    fn rank(sorted: *const SortedSteps, index: usize) usize {
        const step = sorted.buffer[index];
        var better: usize = 0;
        for (sorted.slice(), 0..) |other, at| {
            const is_unit = step.group == .unit;
            const other_is_unit = other.group == .unit;
            better += @intFromBool(if (is_unit != other_is_unit)
                is_unit
            else if (other.duration_us != step.duration_us)
                other.duration_us > step.duration_us
            else
                at < index);
        }
        return better;
    }
};

/// Writes the field `guest` with at most `steps_kept` of its steps.
pub fn write(json: *Stringify, guest: *const Guest, steps_kept: u8) Stringify.Error!void {
    try json.objectField("guest");
    try json.beginObject();
    try signed(json, "kernelStartUs", guest.kernel_start_us);
    try json.objectField("steps");
    try json.beginArray();
    const sorted: SortedSteps = .init(guest);
    for (sorted.slice(), 0..) |step, index| {
        if (sorted.rank(index) >= steps_kept) continue;
        try json.beginObject();
        try json.objectField("group");
        try json.write(@tagName(step.group));
        try json.objectField("name");
        try json.write(step.name);
        try signed(json, "startUs", step.start_us);
        try number(json, "durationUs", step.duration_us);
        try json.endObject();
    }
    try json.endArray();
    if (guest.write_cache) |cache| {
        try json.objectField("writeCache");
        try json.beginObject();
        try number(json, "usedBytes", cache.used);
        try number(json, "sizeBytes", cache.size);
        try number(json, "atUs", cache.at_us);
        if (guest.cache_status.class != .device_ram) try word(json, "class", @tagName(guest.cache_status.class));
        if (guest.cache_status.state != .ok) try word(json, "state", @tagName(guest.cache_status.state));
        if (guest.secondsUntilFull()) |seconds| try number(json, "fullInSeconds", seconds);
        try json.endObject();
    }
    if (guest.order_id) |id| {
        try json.objectField("powerOrderId");
        try json.write(&id.toText());
    }
    try json.endObject();
}

fn word(json: *Stringify, name: []const u8, text: []const u8) Stringify.Error!void {
    try json.objectField(name);
    try json.write(text);
}

fn signed(json: *Stringify, name: []const u8, value: i64) Stringify.Error!void {
    try json.objectField(name);
    try json.write(std.math.clamp(value, -number_max, number_max));
}

fn number(json: *Stringify, name: []const u8, value: u64) Stringify.Error!void {
    try json.objectField(name);
    try json.write(@min(value, number_max));
}
