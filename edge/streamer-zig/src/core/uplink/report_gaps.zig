//! The reports that the log could not keep: ranges of seqs with the times of the first and last
//! one, in slots of fixed size in one file, overwritten in place, so that a full disk cannot
//! prevent them from being recorded. Without this file a range at the end of a boot epoch would
//! leave no trace.

const std = @import("std");
const assert = std.debug.assert;

/// Ranges recorded at a time. Of further ones, those between two reports are still declared,
/// without times, by the missing seqs.
pub const count_max = 256;
pub const file_name = "gaps";

pub const Gap = struct {
    epoch: u64,
    first_seq: u64,
    last_seq: u64,
    /// By this edge's wall clock.
    first_unix_ms: u64,
    last_unix_ms: u64,
};

pub const slot_size = 48;
pub const file_size = count_max * slot_size;

/// Returns the bytes of a slot; zeros where it is free.
pub fn encode(gap: ?Gap) [slot_size]u8 {
    var bytes: [slot_size]u8 = @splat(0);
    const noted = gap orelse return bytes;
    const numbers =
        [_]u64{
            noted.epoch,
            noted.first_seq,
            noted.last_seq,
            noted.first_unix_ms,
            noted.last_unix_ms,
        };
    for (numbers, 0..) |number, index|
        std.mem.writeInt(u64, bytes[8 + index * 8 ..][0..8], number, .little);
    std.mem.writeInt(u32, bytes[0..4], std.hash.Crc32.hash(bytes[8..]), .little);
    return bytes;
}

/// Returns null for a slot that is free or was torn.
pub fn decode(bytes: *const [slot_size]u8) ?Gap {
    if (std.mem.readInt(u32, bytes[0..4], .little) != std.hash.Crc32.hash(bytes[8..])) return null;
    var numbers: [5]u64 = undefined;
    for (&numbers, 0..) |*number, index|
        number.* = std.mem.readInt(u64, bytes[8 + index * 8 ..][0..8], .little);
    if (numbers[0] == 0 or numbers[1] == 0 or numbers[2] < numbers[1]) return null;
    return .{
        .epoch = numbers[0],
        .first_seq = numbers[1],
        .last_seq = numbers[2],
        .first_unix_ms = numbers[3],
        .last_unix_ms = numbers[4],
    };
}

/// The ranges of a log, in memory and in their file.
pub fn ReportGaps(comptime Files: type) type {
    return struct {
        const Gaps = @This();

        /// Null while the disk does not let it be created.
        file: ?Files.File,
        slots: [count_max]?Gap = @splat(null),
        /// The slot of the range that is still open.
        open_index: ?usize = null,

        /// A disk that refuses makes it begin empty.
        pub fn open(files: *Files) Gaps {
            var gaps: Gaps = .{ .file = files.openOrMake(file_name) catch null };
            if (gaps.file == null) return gaps;
            var bytes: [file_size]u8 = @splat(0);
            const size = files.readAt(gaps.file.?, &bytes, 0) catch file_size;
            // Its blocks are on the disk before they are needed.
            if (size < file_size) {
                files.writeAt(gaps.file.?, bytes[size..], size) catch {};
                files.sync(gaps.file.?) catch {};
            }
            for (&gaps.slots, 0..) |*slot, index|
                slot.* = decode(bytes[index * slot_size ..][0..slot_size]);
            return gaps;
        }

        pub fn close(gaps: *Gaps, files: *Files) void {
            if (gaps.file) |file| files.close(file);
            gaps.* = undefined;
        }

        /// Returns the highest epoch of a range; 0: there is none.
        pub fn newestEpoch(gaps: *const Gaps) u64 {
            var newest: u64 = 0;
            for (gaps.slots) |slot| if (slot) |gap| {
                newest = @max(newest, gap.epoch);
            };
            return newest;
        }

        /// A report was lost.
        pub fn note(gaps: *Gaps, files: *Files, epoch: u64, seq: u64) void {
            const now_ms = files.unixMs();
            const index = gaps.open_index orelse blk: {
                const free = for (&gaps.slots, 0..) |slot, index| {
                    if (slot == null) break index;
                } else return;
                gaps.slots[free] = .{
                    .epoch = epoch,
                    .first_seq = seq,
                    .last_seq = seq,
                    .first_unix_ms = now_ms,
                    .last_unix_ms = now_ms,
                };
                gaps.open_index = free;
                break :blk free;
            };
            const gap = &gaps.slots[index].?;
            assert(gap.epoch == epoch and (gap.last_seq + 1 == seq or gap.first_seq == seq));
            assert(gaps.open_index == index);
            gap.last_seq = seq;
            assert(gap.first_seq <= gap.last_seq);
            gap.last_unix_ms = now_ms;
            gaps.write(files, index);
        }

        /// A report was kept: the range is complete.
        pub fn end(gaps: *Gaps) void {
            gaps.open_index = null;
        }

        /// Ranges that the API has acknowledged are freed.
        pub fn ack(gaps: *Gaps, files: *Files, epoch: u64, seq: u64) void {
            for (&gaps.slots, 0..) |*slot, index| {
                const gap = slot.* orelse continue;
                if (gap.epoch != epoch or gap.last_seq > seq) continue;
                slot.* = null;
                if (gaps.open_index == index) gaps.open_index = null;
                gaps.write(files, index);
            }
        }

        fn write(gaps: *Gaps, files: *Files, index: usize) void {
            assert(index < gaps.slots.len);
            // A disk that refuses even this loses the count at a restart; until then memory has it.
            if (gaps.file == null) gaps.file = files.openOrMake(file_name) catch return;
            files.writeAt(gaps.file.?, &encode(gaps.slots[index]), index * slot_size) catch {};
        }

        /// Returns the last recorded seq of an epoch; 0: none.
        pub fn lastOf(gaps: *const Gaps, epoch: u64) u64 {
            var last: u64 = 0;
            for (gaps.slots) |slot| if (slot) |gap| if (gap.epoch == epoch) {
                last = @max(last, gap.last_seq);
            };
            return last;
        }

        /// Returns null if none of that epoch is recorded.
        pub fn firstOf(gaps: *const Gaps, epoch: u64) ?u64 {
            var first: ?u64 = null;
            for (gaps.slots) |slot| if (slot) |gap| if (gap.epoch == epoch) {
                first = @min(first orelse gap.first_seq, gap.first_seq);
            };
            return first;
        }

        /// Counts the recorded losses that are not acknowledged.
        pub fn lostCount(gaps: *const Gaps, epoch_acked: u64, acked_seq: u64) u64 {
            var count: u64 = 0;
            for (gaps.slots) |slot| if (slot) |gap| {
                const acked = if (gap.epoch == epoch_acked) acked_seq else 0;
                count += gap.last_seq + 1 -| @max(gap.first_seq, acked + 1);
            };
            return count;
        }

        /// Returns the lowest epoch that has a loss after `acked_seq` of `sending_epoch`.
        pub fn oldestEpoch(gaps: *const Gaps, sending_epoch: u64, acked_seq: u64) ?u64 {
            var oldest: ?u64 = null;
            for (gaps.slots) |slot| if (slot) |gap| {
                if (gap.epoch == sending_epoch and gap.last_seq <= acked_seq) continue;
                oldest = @min(oldest orelse gap.epoch, gap.epoch);
            };
            return oldest;
        }

        /// Returns when the first and last report of this range were lost; null if nothing is
        /// recorded.
        pub fn timesOf(gaps: *const Gaps, epoch: u64, first_seq: u64, last_seq: u64) ?[2]u64 {
            var times: ?[2]u64 = null;
            for (gaps.slots) |slot| if (slot) |gap| {
                if (gap.epoch != epoch or gap.last_seq < first_seq or gap.first_seq > last_seq)
                    continue;
                const known = times orelse .{ gap.first_unix_ms, gap.last_unix_ms };
                times = .{ @min(known[0], gap.first_unix_ms), @max(known[1], gap.last_unix_ms) };
            };
            return times;
        }
    };
}

test "a slot survives its bytes, and a torn or free one is none" {
    const gap: Gap =
        .{ .epoch = 3, .first_seq = 5, .last_seq = 9, .first_unix_ms = 1000, .last_unix_ms = 2000 };
    const bytes = encode(gap);
    try std.testing.expectEqual(gap, decode(&bytes).?);
    try std.testing.expectEqual(null, decode(&encode(null)));
    for (0..slot_size) |index| {
        if (index >= 4 and index < 8) continue;
        var torn = bytes;
        torn[index] ^= 1;
        try std.testing.expectEqual(null, decode(&torn));
    }
}
