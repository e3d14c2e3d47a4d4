//! `readTimes` of a boot's report (packages/proto/UPLINK.md, `readTimesReport` in src/uplink-boot.ts).

const std = @import("std");
const base = @import("base");
const BootReadTimes = @import("boot_read_times.zig");
const number_max = @import("boot_report_guest.zig").number_max;

const Stringify = std.json.Stringify;

/// Writes the field, unless nothing was measured.
pub fn write(json: *Stringify, times: *const BootReadTimes) Stringify.Error!void {
    if (times.isEmpty()) return;
    try json.objectField("readTimes");
    try json.beginObject();
    inline for (@typeInfo(BootReadTimes).@"struct".field_names) |name| try writeOne(json, name, &@field(times, name));
    try json.endObject();
}

fn writeOne(json: *Stringify, name: []const u8, histogram: *const base.DurationHistogram) Stringify.Error!void {
    const used = histogram.used() orelse return;
    try json.objectField(name);
    try json.beginObject();
    try json.objectField("firstBucket");
    try json.write(used.first);
    try json.objectField("counts");
    try json.write(used.counts);
    try json.objectField("maxUs");
    try json.write(histogram.max_us);
    try json.objectField("sumUs");
    try json.write(@min(histogram.sum_us, number_max));
    try json.endObject();
}
