//! The reports of this edge on its disk until the API has acknowledged them: an append-only log in
//! segments, each of one boot epoch. A record is written before it may be sent and synced before it
//! is sent; a tail torn by a crash is cut at the next start. When the log is full or the disk
//! refuses, a report is lost, its seq stays unused, and the reader declares the hole as a gap
//! (packages/proto/UPLINK.md). One thread appends, one reads.

const std = @import("std");
const base = @import("base");
const boot_report = @import("core").boot_report;
const sys = @import("sys.zig");
const record_file = @import("record_file.zig");
const segments_module = @import("report_segments.zig");
const assert = std.debug.assert;
const linux = std.os.linux;
const Io = std.Io;

const Segment = segments_module.Segment;

pub const ReportLog = struct {
    io: Io,
    dir: Io.Dir,
    options: Options,
    mutex: Io.Mutex = .init,
    /// Sorted by (epoch, first_seq); the last one is the one appended to, if it is of this epoch.
    segments: std.ArrayList(Segment),
    active_fd: ?i32 = null,
    next_seq: u64 = 1,
    lost_count: u64 = 0,
    /// The epoch that is being sent, and what the API has acknowledged of it.
    sending_epoch: u64 = 0,
    acked_seq: u64 = 0,
    /// Where the record after `acked_seq` is, as far as known.
    reader: ReadPosition = .{},
    buffer: [record_file.frame_size_max]u8 = undefined,
    read_buffer: [record_file.frame_size_max]u8 = undefined,

    pub const Options = struct {
        /// The boot epoch of this start; higher than that of every earlier one.
        epoch: u64,
        size_max: u64 = 64 << 20,
        segment_size_max: u64 = 4 << 20,
    };

    pub const OpenError = error{ LogUnreadable, LogFromTheFuture, OutOfMemory };

    pub const Batch = struct {
        epoch: u64,
        from_seq: u64,
        until_seq: u64,
        /// The body of POST /edge/v1/reports.
        body: []const u8,
    };

    const ReadPosition = struct { segment_first_seq: u64 = 0, seq: u64 = 0, offset: u64 = 0 };

    /// A batch has at most 100 reports and 512 KiB (UPLINK.md).
    pub const batch_reports_max = 100;
    pub const batch_size_max = 512 * 1024;
    const report_size_max = boot_report.size_max + 128;

    /// `dir` is the directory of the log alone and stays open while the log is; it must be
    /// iterable.
    pub fn open(io: Io, gpa: std.mem.Allocator, dir: Io.Dir, options: Options) OpenError!ReportLog {
        assert(options.epoch > 0);
        var log: ReportLog = .{
            .io = io,
            .dir = dir,
            .options = options,
            .segments = try .initCapacity(gpa, segments_module.count_max),
        };
        errdefer log.segments.deinit(gpa);
        segments_module.scan(io, dir, &log.segments, &log.buffer) catch return error.LogUnreadable;
        for (log.segments.items) |segment| {
            if (segment.epoch > options.epoch) return error.LogFromTheFuture;
            if (segment.epoch == options.epoch) log.next_seq = @max(
                log.next_seq,
                segment.last_seq + 1,
            );
        }
        return log;
    }

    pub fn deinit(log: *ReportLog, gpa: std.mem.Allocator) void {
        if (log.active_fd) |fd| sys.close(fd);
        log.segments.deinit(gpa);
        log.* = undefined;
    }

    /// Writes a boot (the JSON of boot_report.encode) as the next report; false when it was lost.
    pub fn appendBoot(log: *ReportLog, boot_json: []const u8) bool {
        assert(boot_json.len <= boot_report.size_max);
        var payload: [report_size_max]u8 = undefined;
        const text = std.mem.print(
            &payload,
            "{{\"type\":\"boot\",\"boot\":{s}}}",
            .{boot_json},
        ) catch unreachable;
        return log.append(text);
    }

    /// A boot that was reported went on at another edge of the site.
    pub fn appendWithdrawn(log: *ReportLog, boot: base.Uuid, to: base.Uuid) bool {
        var payload: [128 + 2 * base.Uuid.text_size]u8 = undefined;
        return log.append(std.mem.print(
            &payload,
            "{{\"type\":\"withdrawn\",\"bootId\":\"{f}\",\"toEdgeId\":\"{f}\"}}",
            .{ boot, to },
        ) catch unreachable);
    }

    /// A device that is not in the desired state (the JSON of DiscoveredDevices.encode).
    pub fn appendDiscovered(log: *ReportLog, device_json: []const u8) bool {
        var payload: [report_size_max]u8 = undefined;
        return log.append(std.mem.print(
            &payload,
            "{{\"type\":\"discovered\",\"device\":{s}}}",
            .{device_json},
        ) catch unreachable);
    }

    /// How far a run of a schedule has come (the JSON of schedule_report.next).
    pub fn appendScheduleRun(log: *ReportLog, run_json: []const u8) bool {
        var payload: [report_size_max]u8 = undefined;
        return log.append(std.mem.print(&payload, "{{\"type\":\"schedule_run\",\"run\":{s}}}", .{run_json}) catch unreachable);
    }

    /// A JSON object without a seq, at most `report_size_max` bytes; false when it was lost.
    fn append(log: *ReportLog, text: []const u8) bool {
        assert(text.len <= report_size_max);
        log.mutex.lockUncancelable(log.io);
        defer log.mutex.unlock(log.io);
        const seq = log.next_seq;
        log.next_seq += 1;
        if (log.write(seq, text)) return true;
        log.lost_count += 1;
        return false;
    }

    /// Makes everything appended so far durable, as well as the disk can.
    pub fn sync(log: *ReportLog) void {
        log.mutex.lockUncancelable(log.io);
        defer log.mutex.unlock(log.io);
        if (log.active_fd) |fd| _ = linux.fdatasync(fd);
        _ = linux.fsync(log.dir.handle);
    }

    /// Reports that the API has not acknowledged.
    pub fn backlog(log: *ReportLog) u64 {
        log.mutex.lockUncancelable(log.io);
        defer log.mutex.unlock(log.io);
        var total: u64 = 0;
        for (log.segments.items) |segment| {
            const acked = if (segment.epoch == log.sending_epoch) log.acked_seq else 0;
            total += segment.last_seq + 1 -| @max(segment.first_seq, acked + 1);
        }
        return total;
    }

    /// Makes everything appended so far durable and returns the next batch to send; null when there
    /// is none. `buffer` holds at least `batch_size_max` bytes. Error: the disk does not answer;
    /// try again later.
    pub fn nextBatch(log: *ReportLog, buffer: []u8) sys.Error!?Batch {
        assert(buffer.len >= batch_size_max);
        log.mutex.lockUncancelable(log.io);
        defer log.mutex.unlock(log.io);
        const epoch = log.oldestUnackedEpoch() orelse return null;
        if (epoch != log.sending_epoch) {
            log.sending_epoch = epoch;
            log.acked_seq = log.segments.items[log.firstOf(epoch).?].first_seq - 1;
        }
        var writer: Io.Writer = .fixed(buffer[0..batch_size_max]);
        const from_seq = log.acked_seq + 1;
        writer.print(
            "{{\"bootEpoch\":{d},\"fromSeq\":{d},\"reports\":[",
            .{ epoch, from_seq },
        ) catch unreachable;
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

    /// The API has everything of `epoch` up to `seq`: segments that are acknowledged whole are
    /// deleted.
    pub fn ack(log: *ReportLog, epoch: u64, seq: u64) void {
        log.mutex.lockUncancelable(log.io);
        defer log.mutex.unlock(log.io);
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
            log.dir.deleteFile(log.io, &segment.name()) catch {};
            _ = log.segments.orderedRemove(index);
        }
    }

    /// The API wants `expected_seq` of the epoch being sent. What is no longer here is declared as
    /// a gap by the next batch; the API's cursor decides.
    pub fn rewind(log: *ReportLog, epoch: u64, expected_seq: u64) void {
        log.mutex.lockUncancelable(log.io);
        defer log.mutex.unlock(log.io);
        if (epoch != log.sending_epoch or expected_seq == 0) return;
        log.acked_seq = @min(log.acked_seq, expected_seq - 1);
    }

    fn write(log: *ReportLog, seq: u64, payload: []const u8) bool {
        const frame = record_file.encode(seq, payload, &log.buffer);
        var total_size: u64 = frame.len;
        for (log.segments.items) |segment| total_size += segment.size;
        if (total_size > log.options.size_max) return false;
        const segment = log.activeSegment(seq, frame.len) orelse return false;
        sys.writeAll(log.active_fd.?, frame) catch {
            // Part of a record at the end would hide all later ones.
            const rc = linux.ftruncate(log.active_fd.?, @intCast(segment.size));
            if (linux.errno(rc) != .SUCCESS) log.closeActive();
            return false;
        };
        segment.size += frame.len;
        segment.last_seq = seq;
        return true;
    }

    fn activeSegment(log: *ReportLog, seq: u64, size: usize) ?*Segment {
        if (log.active_fd != null) {
            const last = &log.segments.items[log.segments.items.len - 1];
            if (last.size + size <= log.options.segment_size_max) return last;
            log.closeActive();
        }
        const segment: Segment = .{
            .epoch = log.options.epoch,
            .first_seq = seq,
            .last_seq = seq - 1,
            .size = 0,
        };
        if (log.segments.items.len == log.segments.capacity) return null;
        const file = log.dir.createFile(
            log.io,
            &segment.name(),
            .{ .exclusive = true },
        ) catch return null;
        log.active_fd = file.handle;
        log.segments.appendAssumeCapacity(segment);
        return &log.segments.items[log.segments.items.len - 1];
    }

    /// A segment in which nothing was written is of no use to the reader.
    fn closeActive(log: *ReportLog) void {
        const fd = log.active_fd orelse return;
        _ = linux.fdatasync(fd);
        sys.close(fd);
        log.active_fd = null;
        const last = log.segments.items[log.segments.items.len - 1];
        if (last.last_seq >= last.first_seq) return;
        log.dir.deleteFile(log.io, &last.name()) catch {};
        _ = log.segments.pop();
    }

    fn firstOf(log: *const ReportLog, epoch: u64) ?usize {
        for (log.segments.items, 0..) |segment, index| if (segment.epoch == epoch) return index;
        return null;
    }

    fn oldestUnackedEpoch(log: *const ReportLog) ?u64 {
        for (log.segments.items) |segment| {
            const acked = if (segment.epoch == log.sending_epoch) log.acked_seq else 0;
            if (segment.last_seq >= segment.first_seq and segment.last_seq > acked) return segment.epoch;
        }
        return null;
    }

    /// Returns the last seq that the reports written cover.
    fn writeReports(log: *ReportLog, writer: *Io.Writer, epoch: u64, from_seq: u64) sys.Error!u64 {
        var until_seq = from_seq - 1;
        var count: u32 = 0;
        for (log.segments.items) |segment| {
            if (segment.epoch != epoch or segment.last_seq < from_seq) continue;
            const file = log.dir.openFile(
                log.io,
                &segment.name(),
                .{},
            ) catch return error.SystemCallFailed;
            defer file.close(log.io);
            if (linux.errno(
                linux.fdatasync(file.handle),
            ) != .SUCCESS) return error.SystemCallFailed;
            var reader: record_file.Reader = .{ .fd = file.handle, .buffer = &log.read_buffer };
            if (log.reader.segment_first_seq == segment.first_seq and log.reader.seq == from_seq)
                reader.offset = log.reader.offset;
            while (true) {
                const offset = reader.offset;
                if (offset >= segment.size) break;
                const record = try reader.next() orelse break;
                if (record.number < from_seq) continue;
                // A gap and a report take two places, and the closing brackets their own.
                if (count + 2 > batch_reports_max or writer.unusedCapacityLen() < 2 * report_size_max) {
                    log.reader = .{
                        .segment_first_seq = segment.first_seq,
                        .seq = until_seq + 1,
                        .offset = offset,
                    };
                    return until_seq;
                }
                count += writeReport(writer, until_seq + 1, record, count);
                until_seq = record.number;
            }
            if (until_seq < segment.last_seq) {
                writeGap(writer, until_seq + 1, segment.last_seq, "report log damaged", count);
                count += 1;
                until_seq = segment.last_seq;
            }
        }
        _ = linux.fsync(log.dir.handle);
        return until_seq;
    }
};

/// Returns how many reports it wrote: a missing stretch before the record is one of its own.
fn writeReport(
    writer: *Io.Writer,
    expected_seq: u64,
    record: record_file.Record,
    written: u32,
) u32 {
    var count: u32 = 0;
    if (record.number > expected_seq) {
        writeGap(writer, expected_seq, record.number - 1, "report log full", written);
        count += 1;
    }
    if (written + count > 0) writer.writeByte(',') catch unreachable;
    writer.print("{{\"seq\":{d},{s}", .{ record.number, record.payload[1..] }) catch unreachable;
    return count + 1;
}

fn writeGap(writer: *Io.Writer, seq: u64, until_seq: u64, reason: []const u8, written: u32) void {
    assert(until_seq >= seq);
    if (written > 0) writer.writeByte(',') catch unreachable;
    writer.print(
        "{{\"seq\":{d},\"type\":\"gap\",\"untilSeq\":{d},\"reason\":\"{s}\"}}",
        .{ seq, until_seq, reason },
    ) catch unreachable;
}

test {
    _ = @import("report_log_test.zig");
}
