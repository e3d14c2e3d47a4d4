//! This edge's reports on its disk until the API has acknowledged them: an append-only log in
//! segments, each of one boot epoch. A record is written before it may be sent and synced before it
//! is sent; a tail torn by a crash is cut at the next start. If the log is full or the disk
//! refuses, a report is lost, its seq stays unused, and the reader declares the hole as a gap
//! (packages/proto/UPLINK.md). One thread appends, one reads.
//!
//! `Files` is the directory of the log: host/files/report_log.zig, or the simulator's disk. Its
//! File is a handle; every error is error.DiskFailed.

const std = @import("std");
const base = @import("base");
const boot_report = @import("../boot/report.zig");
const record_frame = @import("record_frame.zig");
const gaps_module = @import("report_gaps.zig");
const WaitingDevices = @import("../site/waiting_devices.zig");
const assert = std.debug.assert;

/// A batch has at most 100 reports and 512 KiB (UPLINK.md).
pub const batch_reports_max = 100;
pub const batch_size_max = 512 * 1024;
/// Three weeks of 1,000 devices that boot four times a day while the API is away: 2 reports of 3 kB
/// each.
pub const size_max_default: u64 = 512 << 20;
/// With this many waiting the API is away: only the ends of boots are kept.
pub const behind_count = 1000;

pub const Options = struct {
    /// The boot epoch of this start; higher than that of every earlier one.
    epoch: u64,
    size_max: u64 = size_max_default,
    segment_size_max: u64 = 4 << 20,
};

pub const OpenError = error{ LogFromTheFuture, OutOfMemory };

pub const Batch = struct {
    epoch: u64,
    from_seq: u64,
    until_seq: u64,
    /// The body of POST /edge/v1/reports.
    body: []const u8,
};

pub fn ReportLog(comptime Files: type) type {
    return struct {
        const Log = @This();
        const Gaps = gaps_module.ReportGaps(Files);
        const Reader = SegmentReader(Files);

        files: Files,
        options: Options,
        gaps: Gaps,
        /// Sorted by (epoch, first_seq); the last one is the one appended to, if it is of this
        /// epoch.
        segments: std.ArrayList(Segment),
        active: ?Files.File = null,
        next_seq: u64 = 1,
        lost_count: u64 = 0,
        /// `lost_count` for readers that must not wait for the lock.
        published_losses: std.atomic.Value(u64) = .init(0),
        /// `backlog` for readers that must not wait for the lock.
        published_backlog: std.atomic.Value(u64) = .init(0),
        /// The epoch being sent, and what the API has acknowledged of it.
        sending_epoch: u64 = 0,
        acked_seq: u64 = 0,
        /// Where the record after `acked_seq` is, as far as known.
        reader: ReadPosition = .{},
        buffer: [record_frame.frame_size_max]u8 = undefined,
        read_buffer: [record_frame.frame_size_max]u8 = undefined,

        const ReadPosition = struct { segment_first_seq: u64 = 0, seq: u64 = 0, offset: u64 = 0 };

        const report_size_max = boot_report.size_max + 128;

        /// Returns the highest epoch that the files name: that of this start must be higher.
        pub fn newestEpoch(files: *Files) u64 {
            var gaps: Gaps = .open(files);
            defer gaps.close(files);
            var newest = gaps.newestEpoch();
            var iterator = files.iterate();
            while (iterator.next() catch null) |name| {
                const segment = Segment.parse(name) orelse continue;
                newest = @max(newest, segment.epoch);
            }
            return newest;
        }

        /// The state behind `files` stays open while the log is. Whatever the disk refuses, the log
        /// opens: segments that cannot be read now are sent by a later start.
        pub fn open(gpa: std.mem.Allocator, files: Files, options: Options) OpenError!Log {
            assert(options.epoch > 0);
            var log: Log =
                .{ .files = files, .options = options, .gaps = undefined, .segments = .empty };
            log.segments = try .initCapacity(gpa, segments_max);
            errdefer log.segments.deinit(gpa);
            log.gaps = .open(&log.files);
            errdefer log.gaps.close(&log.files);
            scanSegments(Files, &log.files, &log.segments, &log.buffer);
            for (log.segments.items) |segment| {
                if (segment.epoch > options.epoch) return error.LogFromTheFuture;
                if (segment.epoch == options.epoch)
                    log.next_seq = @max(log.next_seq, segment.last_seq + 1);
            }
            if (log.gaps.newestEpoch() > options.epoch) return error.LogFromTheFuture;
            log.next_seq = @max(log.next_seq, log.gaps.lastOf(options.epoch) + 1);
            log.publish();
            return log;
        }

        pub fn deinit(log: *Log, gpa: std.mem.Allocator) void {
            if (log.active) |file| log.files.close(file);
            log.gaps.close(&log.files);
            log.segments.deinit(gpa);
            log.* = undefined;
        }

        /// Writes a boot (the JSON of boot_report.encode) as the next report; returns false if it
        /// was lost.
        pub fn appendBoot(log: *Log, boot_json: []const u8) bool {
            assert(boot_json.len <= boot_report.size_max);
            var payload: [report_size_max]u8 = undefined;
            const text = std.mem.print(
                &payload,
                "{{\"type\":\"boot\",\"boot\":{s}}}",
                .{boot_json},
            ) catch unreachable;
            return log.append(text);
        }

        /// A reported boot failed over to another edge of the site.
        pub fn appendWithdrawn(log: *Log, boot: base.Uuid, to: base.Uuid) bool {
            var payload: [128 + 2 * base.Uuid.text_size]u8 = undefined;
            return log.append(std.mem.print(
                &payload,
                "{{\"type\":\"withdrawn\",\"bootId\":\"{f}\",\"toEdgeId\":\"{f}\"}}",
                .{ boot, to },
            ) catch unreachable);
        }

        /// A device tried to fail over to this edge, and waits for the edge that keeps its writes.
        pub fn appendWaiting(log: *Log, waiting: *const WaitingDevices.Waiting) bool {
            var payload: [256 + 2 * base.Uuid.text_size]u8 = undefined;
            return log.append(std.mem.print(
                &payload,
                "{{\"type\":\"waiting\",\"bootId\":\"{f}\",\"mac\":\"{s}\",\"edgeId\":\"{f}\",\"startedUnixMs\":{d},\"atUs\":{d}}}",
                .{
                    waiting.boot_id,
                    &waiting.mac.toText(),
                    waiting.edge,
                    @min(waiting.started_unix_ms, boot_report.number_max),
                    @min(waiting.at_us, boot_report.number_max),
                },
            ) catch unreachable);
        }

        /// A device that is not in the desired state (the JSON of DiscoveredDevices.encode).
        pub fn appendDiscovered(log: *Log, device_json: []const u8) bool {
            assert(device_json.len <= boot_report.size_max);
            var payload: [report_size_max]u8 = undefined;
            return log.append(std.mem.print(
                &payload,
                "{{\"type\":\"discovered\",\"device\":{s}}}",
                .{device_json},
            ) catch unreachable);
        }

        /// Progress of a schedule's run (the JSON of schedule_report.next).
        pub fn appendScheduleRun(log: *Log, run_json: []const u8) bool {
            assert(run_json.len <= boot_report.size_max);
            var payload: [report_size_max]u8 = undefined;
            return log.append(std.mem.print(
                &payload,
                "{{\"type\":\"schedule_run\",\"run\":{s}}}",
                .{run_json},
            ) catch unreachable);
        }

        /// Appends a JSON object without a seq, at most `report_size_max` bytes; returns false if
        /// it was lost.
        fn append(log: *Log, text: []const u8) bool {
            assert(text.len <= report_size_max);
            log.files.lock();
            defer log.files.unlock();
            defer log.publish();
            const seq = log.next_seq;
            log.next_seq += 1;
            if (log.write(seq, text)) {
                log.gaps.end();
                return true;
            }
            log.lost_count += 1;
            log.gaps.note(&log.files, log.options.epoch, seq);
            return false;
        }

        /// Declares reports that did not come as far as the log.
        pub fn lose(log: *Log, count: u64) void {
            if (count == 0) return;
            log.files.lock();
            defer log.files.unlock();
            defer log.publish();
            for (0..count) |_| {
                log.lost_count += 1;
                log.gaps.note(&log.files, log.options.epoch, log.next_seq);
                log.next_seq += 1;
            }
        }

        fn publish(log: *Log) void {
            log.published_backlog.store(log.countBacklog(), .release);
            log.published_losses.store(log.lost_count, .release);
        }

        /// Makes everything appended so far durable, as well as the disk can.
        pub fn sync(log: *Log) void {
            log.files.lock();
            defer log.files.unlock();
            if (log.active) |file| log.files.sync(file) catch {};
            log.files.syncNames();
        }

        /// Counts the reports that the API has not acknowledged, lost ones included.
        pub fn backlog(log: *Log) u64 {
            log.files.lock();
            defer log.files.unlock();
            return log.countBacklog();
        }

        fn countBacklog(log: *const Log) u64 {
            assert(log.segments.items.len <= segments_max);
            // Losses within a segment are counted with it.
            var total: u64 = 0;
            for (log.segments.items) |segment| {
                const acked = if (segment.epoch == log.sending_epoch) log.acked_seq else 0;
                total += segment.last_seq + 1 -| @max(segment.first_seq, acked + 1);
            }
            for (log.gaps.slots) |place| if (place) |gap| {
                const acked = if (gap.epoch == log.sending_epoch) log.acked_seq else 0;
                if (log.isCovered(gap)) continue;
                total += gap.last_seq + 1 -| @max(gap.first_seq, acked + 1);
            };
            return total;
        }

        /// Reports that could not be kept.
        pub const Losses = struct {
            /// Reports since the start.
            since_start: u64,
            /// Ranges of them, over all starts, that the API has not acknowledged yet.
            gap_count: u64,
            /// Reports in these.
            gap_reports: u64,
        };

        pub fn losses(log: *Log) Losses {
            log.files.lock();
            defer log.files.unlock();
            var gap_count: u64 = 0;
            for (log.gaps.slots) |place| gap_count += @intFromBool(place != null);
            return .{
                .since_start = log.lost_count,
                .gap_count = gap_count,
                .gap_reports = log.gaps.lostCount(log.sending_epoch, log.acked_seq),
            };
        }

        /// So many reports wait that those of boots in progress would only displace their ends.
        pub fn isBehind(log: *Log) bool {
            return log.backlog() > behind_count;
        }

        /// The gap lies within a segment.
        fn isCovered(log: *const Log, gap: gaps_module.Gap) bool {
            for (log.segments.items) |segment| if (segment.epoch == gap.epoch and
                segment.first_seq <= gap.first_seq and
                segment.last_seq >= gap.last_seq) return true;
            return false;
        }

        /// Makes everything appended so far durable and returns the next batch to send; null if
        /// there is none. `buffer` holds at least `batch_size_max` bytes. Error: the disk does not
        /// respond; the caller retries later.
        pub fn nextBatch(log: *Log, buffer: []u8) error{DiskFailed}!?Batch {
            assert(buffer.len >= batch_size_max);
            log.files.lock();
            defer log.files.unlock();
            defer log.publish();
            const epoch = log.oldestUnackedEpoch() orelse return null;
            if (epoch != log.sending_epoch) {
                log.sending_epoch = epoch;
                log.acked_seq = log.firstOf(epoch).? - 1;
            }
            var writer: std.Io.Writer = .fixed(buffer[0..batch_size_max]);
            const from_seq = log.acked_seq + 1;
            writer.print("{{\"bootEpoch\":{d},\"fromSeq\":{d},\"reports\":[", .{
                epoch, from_seq,
            }) catch unreachable;
            const until_seq = try log.writeReports(&writer, epoch, from_seq);
            assert(until_seq >= from_seq);
            writer.writeAll("]}") catch unreachable;
            return .{
                .epoch = epoch,
                .from_seq = from_seq,
                .until_seq = until_seq,
                .body = writer.buffered(),
            };
        }

        /// The API has everything of `epoch` up to `seq`: segments that are acknowledged completely
        /// are deleted.
        pub fn ack(log: *Log, epoch: u64, seq: u64) void {
            log.files.lock();
            defer log.files.unlock();
            defer log.publish();
            if (epoch != log.sending_epoch or seq <= log.acked_seq) return;
            log.acked_seq = if (epoch == log.options.epoch) @min(seq, log.next_seq - 1) else seq;
            var index: usize = 0;
            while (index < log.segments.items.len) {
                const segment = log.segments.items[index];
                if (segment.epoch != epoch or segment.last_seq > log.acked_seq) {
                    index += 1;
                    continue;
                }
                if (index + 1 == log.segments.items.len) log.closeActive();
                // It was empty, and is gone.
                if (index == log.segments.items.len) break;
                log.files.delete(&segment.name()) catch {};
                _ = log.segments.orderedRemove(index);
            }
            log.gaps.ack(&log.files, epoch, log.acked_seq);
            assert(log.segments.items.len <= segments_max);
        }

        /// The API wants `expected_seq` of the epoch being sent. Reports that are no longer here
        /// are declared as a gap by the next batch; the API's cursor decides.
        pub fn rewind(log: *Log, epoch: u64, expected_seq: u64) void {
            log.files.lock();
            defer log.files.unlock();
            defer log.publish();
            if (epoch != log.sending_epoch or expected_seq == 0) return;
            log.acked_seq = @min(log.acked_seq, expected_seq - 1);
            assert(log.acked_seq < expected_seq);
        }

        fn write(log: *Log, seq: u64, payload: []const u8) bool {
            const frame = record_frame.encode(seq, payload, &log.buffer);
            var total_size: u64 = frame.len;
            for (log.segments.items) |segment| total_size += segment.size;
            if (total_size > log.options.size_max) return false;
            const segment = log.activeSegment(seq, frame.len) orelse return false;
            log.files.append(log.active.?, frame) catch {
                // Part of a record at the end would hide all later ones.
                log.files.truncate(log.active.?, segment.size) catch log.closeActive();
                return false;
            };
            assert(segment.last_seq < seq);
            segment.size += frame.len;
            segment.last_seq = seq;
            return true;
        }

        fn activeSegment(log: *Log, seq: u64, size: usize) ?*Segment {
            assert(seq < log.next_seq);
            if (log.active != null) {
                const last = &log.segments.items[log.segments.items.len - 1];
                if (last.size + size <= log.options.segment_size_max) return last;
                log.closeActive();
            }
            const segment: Segment =
                .{ .epoch = log.options.epoch, .first_seq = seq, .last_seq = seq - 1, .size = 0 };
            if (log.segments.items.len == log.segments.capacity) return null;
            log.active = log.files.make(&segment.name()) catch return null;
            log.segments.appendAssumeCapacity(segment);
            return &log.segments.items[log.segments.items.len - 1];
        }

        /// A segment in which nothing was written is of no use to the reader.
        fn closeActive(log: *Log) void {
            const file = log.active orelse return;
            log.files.sync(file) catch {};
            log.files.close(file);
            log.active = null;
            assert(log.segments.items.len > 0);
            const last = log.segments.items[log.segments.items.len - 1];
            if (last.last_seq >= last.first_seq) return;
            log.files.delete(&last.name()) catch {};
            _ = log.segments.pop();
        }

        /// Returns the first seq of an epoch that is here or recorded as lost.
        fn firstOf(log: *const Log, epoch: u64) ?u64 {
            const lost = log.gaps.firstOf(epoch);
            for (log.segments.items) |segment| if (segment.epoch == epoch)
                return @min(segment.first_seq, lost orelse segment.first_seq);
            return lost;
        }

        fn oldestUnackedEpoch(log: *const Log) ?u64 {
            const lost = log.gaps.oldestEpoch(log.sending_epoch, log.acked_seq);
            for (log.segments.items) |segment| {
                const acked = if (segment.epoch == log.sending_epoch) log.acked_seq else 0;
                if (segment.last_seq >= segment.first_seq and segment.last_seq > acked)
                    return @min(segment.epoch, lost orelse segment.epoch);
            }
            return lost;
        }

        /// Returns the last seq that the written reports cover.
        fn writeReports(
            log: *Log,
            writer: *std.Io.Writer,
            epoch: u64,
            from_seq: u64,
        ) error{DiskFailed}!u64 {
            var batch: BatchWriter =
                .{ .log = log, .writer = writer, .epoch = epoch, .until_seq = from_seq - 1 };
            for (log.segments.items) |segment| {
                if (segment.epoch != epoch or segment.last_seq < from_seq) continue;
                if (!try batch.writeSegment(&segment, from_seq)) return batch.until_seq;
            }
            const lost_seq = log.gaps.lastOf(epoch);
            if (lost_seq > batch.until_seq and batch.count < batch_reports_max)
                batch.writeGap(lost_seq, full);
            assert(batch.until_seq + 1 >= from_seq);
            assert(batch.count <= batch_reports_max);
            log.files.syncNames();
            return batch.until_seq;
        }

        const full = "report log full";

        const BatchWriter = struct {
            log: *Log,
            writer: *std.Io.Writer,
            epoch: u64,
            until_seq: u64,
            count: u32 = 0,

            /// Returns false if the batch is full.
            fn writeSegment(
                batch: *BatchWriter,
                segment: *const Segment,
                from_seq: u64,
            ) error{DiskFailed}!bool {
                const log = batch.log;
                const file = try log.files.open(&segment.name());
                defer log.files.close(file);
                try log.files.sync(file);
                var reader: Reader =
                    .{ .files = &log.files, .file = file, .buffer = &log.read_buffer };
                if (log.reader.segment_first_seq == segment.first_seq and
                    log.reader.seq == from_seq)
                    reader.offset = log.reader.offset;
                while (true) {
                    const offset = reader.offset;
                    if (offset >= segment.size) break;
                    const record = try reader.next() orelse break;
                    if (record.number < from_seq) continue;
                    // A gap and a report count as two, and the closing brackets need space of their
                    // own.
                    if (batch.count + 2 > batch_reports_max or
                        batch.writer.unusedCapacityLen() < 2 * report_size_max)
                    {
                        log.reader = .{
                            .segment_first_seq = segment.first_seq,
                            .seq = batch.until_seq + 1,
                            .offset = offset,
                        };
                        return false;
                    }
                    batch.writeReport(record);
                }
                if (batch.until_seq >= segment.last_seq) return true;
                if (batch.count == batch_reports_max) return false;
                batch.writeGap(segment.last_seq, "report log damaged");
                return true;
            }

            /// A missing range before the record is a report of its own.
            fn writeReport(batch: *BatchWriter, record: record_frame.Record) void {
                if (record.number > batch.until_seq + 1) batch.writeGap(record.number - 1, full);
                if (batch.count > 0) batch.writer.writeByte(',') catch unreachable;
                batch.writer.print("{{\"seq\":{d},{s}", .{
                    record.number, record.payload[1..],
                }) catch unreachable;
                batch.count += 1;
                batch.until_seq = record.number;
            }

            fn writeGap(batch: *BatchWriter, last_seq: u64, reason: []const u8) void {
                const first_seq = batch.until_seq + 1;
                assert(last_seq >= first_seq);
                if (batch.count > 0) batch.writer.writeByte(',') catch unreachable;
                batch.writer.print(
                    "{{\"seq\":{d},\"type\":\"gap\",\"untilSeq\":{d},\"reason\":\"{s}\"",
                    .{ first_seq, last_seq, reason },
                ) catch unreachable;
                if (batch.log.gaps.timesOf(batch.epoch, first_seq, last_seq)) |times|
                    batch.writer.print(",\"fromUnixMs\":{d},\"untilUnixMs\":{d}", .{
                        times[0], times[1],
                    }) catch unreachable;
                batch.writer.writeByte('}') catch unreachable;
                batch.count += 1;
                batch.until_seq = last_seq;
            }
        };
    };
}

/// Each start of the edge adds one; those without reports are never created.
const segments_max = 4096;

const Segment = struct {
    epoch: u64,
    first_seq: u64,
    /// Below `first_seq` while the segment is empty.
    last_seq: u64,
    size: u64,

    const digits = 20;
    const suffix = ".log";
    pub const name_size = digits + 1 + digits + suffix.len;

    /// `EPOCH-FIRST_SEQ.log` with leading zeros, so that names sort like segments.
    pub fn name(segment: *const Segment) [name_size]u8 {
        var text: [name_size]u8 = undefined;
        _ = std.mem.print(&text, "{d:0>20}-{d:0>20}" ++ suffix, .{
            segment.epoch, segment.first_seq,
        }) catch unreachable;
        return text;
    }

    /// Returns null for a name that is not a segment's.
    fn parse(text: []const u8) ?Segment {
        if (text.len != name_size or text[digits] != '-') return null;
        if (!std.mem.endsWith(u8, text, suffix)) return null;
        const epoch = std.fmt.parseInt(u64, text[0..digits], 10) catch return null;
        const first_seq =
            std.fmt.parseInt(u64, text[digits + 1 ..][0..digits], 10) catch return null;
        if (epoch == 0 or first_seq == 0) return null;
        return .{ .epoch = epoch, .first_seq = first_seq, .last_seq = first_seq - 1, .size = 0 };
    }

    fn before(_: void, a: Segment, b: Segment) bool {
        if (a.epoch != b.epoch) return a.epoch < b.epoch;
        return a.first_seq < b.first_seq;
    }
};

/// Reads consecutive records from a file of `Files`.
fn SegmentReader(comptime Files: type) type {
    return struct {
        files: *Files,
        file: Files.File,
        offset: u64 = 0,
        buffer: *[record_frame.frame_size_max]u8,

        /// Returns the next complete record; its payload is valid until the next call. Null at the
        /// end and at damage.
        pub fn next(reader: *@This()) error{DiskFailed}!?record_frame.Record {
            const size = try reader.files.readAt(reader.file, reader.buffer, reader.offset);
            const record = record_frame.decode(reader.buffer[0..size]) orelse return null;
            reader.offset += record.frame_size;
            return record;
        }
    };
}

/// Fills `segments` from the directory, sorted. A torn tail is cut off its file, and a file without
/// one complete record is deleted, as far as the disk lets it. What cannot be read, or is more than
/// `segments_max`, stays for a later start.
fn scanSegments(
    comptime Files: type,
    files: *Files,
    segments: *std.ArrayList(Segment),
    buffer: *[record_frame.frame_size_max]u8,
) void {
    var iterator = files.iterate();
    while (iterator.next() catch null) |name| {
        const segment = Segment.parse(name) orelse continue;
        segments.appendBounded(segment) catch break;
    }
    base.sort(Segment, segments.items, {}, Segment.before);
    var index: usize = 0;
    while (index < segments.items.len) {
        const segment = &segments.items[index];
        const is_read = if (measure(Files, files, segment, buffer)) true else |_| false;
        if (is_read and segment.last_seq >= segment.first_seq) {
            index += 1;
            continue;
        }
        if (is_read) files.delete(&segment.name()) catch {};
        _ = segments.orderedRemove(index);
    }
}

fn measure(
    comptime Files: type,
    files: *Files,
    segment: *Segment,
    buffer: *[record_frame.frame_size_max]u8,
) error{DiskFailed}!void {
    const file = try files.open(&segment.name());
    defer files.close(file);
    var reader: SegmentReader(Files) = .{ .files = files, .file = file, .buffer = buffer };
    while (try reader.next()) |record| {
        if (record.number <= segment.last_seq) break;
        assert(reader.offset > segment.size);
        segment.last_seq = record.number;
        segment.size = reader.offset;
    }
    // A tail that stays is never read: the log appends to files of this start only.
    files.truncate(file, segment.size) catch {};
    // A process that was killed has not synced its last records, and `sync` reaches only the file
    // that this process appends to.
    files.sync(file) catch {};
}
