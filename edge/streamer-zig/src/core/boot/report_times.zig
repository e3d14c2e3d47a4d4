//! `readTimes` of a boot's report (packages/proto/UPLINK.md, `readTimesReport` in src/uplink-boot.ts).

const std = @import("std");
const base = @import("base");
const BootReadTimes = @import("read_times.zig");
const number_max = @import("report_guest.zig").number_max;

const Part = BootReadTimes.Part;
const Stringify = std.json.Stringify;

/// Writes the field, unless nothing was measured.
pub fn write(json: *Stringify, times: *const BootReadTimes, with_phases: bool) Stringify.Error!void {
    if (times.isEmpty()) return;
    try json.objectField("readTimes");
    try json.beginObject();
    try writePart(json, &times.whole());
    if (with_phases) if (times.system) |*system| {
        try json.objectField("phases");
        try json.beginArray();
        try writePhase(json, "initramfs", &times.initramfs);
        try writePhase(json, "system", system);
        try json.endArray();
    };
    try json.endObject();
}

fn writePhase(json: *Stringify, name: []const u8, part: *const Part) Stringify.Error!void {
    try json.beginObject();
    try json.objectField("name");
    try json.write(name);
    try writePart(json, part);
    try json.endObject();
}

fn writePart(json: *Stringify, part: *const Part) Stringify.Error!void {
    try json.objectField("bytes");
    try json.write(@min(part.bytes, number_max));
    inline for (Part.histogram_names) |name| try writeOne(json, name, &@field(part, name));
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
