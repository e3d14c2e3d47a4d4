//! Appends to a journal, syncs and compacts it by a worker, for owners in the packet loop. Of the
//! records with the same key the latest counts. Compaction copies the latest ones from the old
//! file, so that it needs nothing from the loop but the keys that are still in use.
//!
//! Orders that hold: records reach the file as they were given. A packet that was given with `send`
//! leaves after every record given before it is with the kernel, or, on request, on the disk; one
//! sync serves all packets that wait. A disk that refuses is said once, and the edge continues.

const std = @import("std");
const Kept = @import("agent").Kept;
const base = @import("base");
const journal_file = @import("journal.zig");
const health = @import("../health.zig");
const sys = @import("../sys.zig");
const UdpSocket = @import("../net/udp_socket.zig");
const Worker = @import("../threads/worker.zig");
const assert = std.debug.assert;

/// Enough for the records of a second in which hundreds of devices begin to boot.
pub const worker_size = 4 << 20;
/// Bytes of the worker that stay free for records that nobody would write again.
const reserve_size = 256 << 10;

pub fn JournalWriter(comptime Format: type) type {
    return struct {
        const Writer = @This();
        const Journal = journal_file.Journal(Format);

        pub const Key = u128;

        worker: *Worker,
        /// Records that were given and reached the file, or were refused by it.
        given: u64 = 0,
        written: std.atomic.Value(u64) = .init(0),
        /// Records that are on the disk.
        synced: std.atomic.Value(u64) = .init(0),
        /// The file is long enough to be compacted.
        is_long: std.atomic.Value(bool) = .init(false),
        /// The disk took records again after it had refused some: whoever knows all of them writes
        /// them once more.
        is_recovered: std.atomic.Value(bool) = .init(false),
        refuses: std.atomic.Value(bool) = .init(false),
        /// Bytes written since the start, compactions included.
        written_bytes: std.atomic.Value(u64) = .init(0),
        /// From here on, the worker's.
        gpa: std.mem.Allocator,
        file: Journal,
        latest: Index = .empty,
        /// The index lacks a record: what would be lost with a compaction is not compacted.
        is_incomplete: bool = false,
        is_refused: bool = false,
        /// What a refusing disk is told as; null: only the log.
        problem: ?health.Problem = null,
        buffer: []u8,
        buffered: usize = 0,
        pending: base.BoundedArray(Pending, 512) = .empty,

        /// A record in `buffer`.
        const Pending = struct { key: Key, size: u32, is_end: bool };
        const Place = struct { offset: u64, size: u32, is_live: bool = false };
        /// In the order in which the keys came.
        const Index = std.array_hash_map.Auto(Key, Place);

        const Operation = enum(u8) {
            append,
            /// Appends the last record of a key.
            end,
            compact,
            probe,
            sync,
            send,
            send_synced,
            wake,
        };

        const Header = extern struct { operation: u8, key: [16]u8 };
        const PacketHead = struct { socket: *UdpSocket, to: base.Endpoint };

        const buffer_size = @max(256 << 10, 2 * Format.frame_size_max);

        /// Takes the file; `load` the index before the first record is given. The writer must not
        /// move after that.
        pub fn init(
            gpa: std.mem.Allocator,
            worker: *Worker,
            file: Journal,
        ) error{OutOfMemory}!Writer {
            const buffer = try gpa.alloc(u8, buffer_size);
            return .{ .worker = worker, .gpa = gpa, .file = file, .buffer = buffer };
        }

        /// Waits for the worker.
        pub fn deinit(writer: *Writer) void {
            writer.worker.finish();
            writer.latest.deinit(writer.gpa);
            writer.gpa.free(writer.buffer);
            writer.file.close();
            writer.* = undefined;
        }

        /// While the journal is read: the record that ends at `end_at` is the latest one of its
        /// key.
        pub fn noteRead(writer: *Writer, key: Key, size: usize, end_at: u64) void {
            assert(end_at >= size);
            writer.noteLatest(key, .{ .offset = end_at - size, .size = @intCast(size) });
        }

        pub fn noteReadEnd(writer: *Writer, key: Key) void {
            _ = writer.latest.orderedRemove(key);
        }

        fn noteLatest(writer: *Writer, key: Key, place: Place) void {
            writer.latest.put(writer.gpa, key, place) catch {
                writer.is_incomplete = true;
            };
        }

        /// The journal has been read.
        pub fn begin(writer: *Writer, reader: *const Journal.Reader) void {
            writer.file.endReading(reader);
            writer.onDisk(!writer.file.is_read_only and !reader.has_failed);
            var size: u64 = 0;
            for (writer.latest.values()) |*place| size += place.size;
            writer.file.setCompacted(size);
        }

        // The packet loop calls these.

        /// Returns false if the worker is full: nothing was kept.
        pub fn append(writer: *Writer, key: Key, frame: []const u8) bool {
            return writer.giveRecord(.append, key, frame, reserve_size);
        }

        /// Appends the last record of a key, which a compaction drops with all earlier ones.
        pub fn end(writer: *Writer, key: Key, frame: []const u8) bool {
            return writer.giveRecord(.end, key, frame, 0);
        }

        fn giveRecord(
            writer: *Writer,
            operation: Operation,
            key: Key,
            frame: []const u8,
            reserve: usize,
        ) bool {
            assert(frame.len > 0);
            assert(frame.len <= Format.frame_size_max);
            if (!writer.give(operation, key, frame, reserve)) return false;
            writer.given += 1;
            return true;
        }

        /// Sends a packet when everything that was given is kept. It is lost if the worker is full.
        pub fn send(
            writer: *Writer,
            after: Kept,
            socket: *UdpSocket,
            to: base.Endpoint,
            bytes: []const u8,
        ) void {
            const kept = switch (after) {
                .written => &writer.written,
                .synced => &writer.synced,
            };
            if (kept.load(.acquire) == writer.given) return socket.send(to, bytes);
            const operation: Operation = if (after == .synced) .send_synced else .send;
            const header: Header = .{ .operation = @backingInt(operation), .key = @splat(0) };
            const packet: PacketHead = .{ .socket = socket, .to = to };
            _ = writer.worker.give(
                writer.task(),
                &.{ std.mem.asBytes(&header), std.mem.asBytes(&packet), bytes },
                0,
            );
        }

        /// Writes to an eventfd when everything that was given is with the kernel; false: the
        /// worker is full.
        pub fn wakeWritten(writer: *Writer, wake_fd: i32) bool {
            return writer.give(.wake, @intCast(wake_fd), "", 0);
        }

        /// Returns true if everything that was given is with the kernel.
        pub fn isWritten(writer: *const Writer) bool {
            return writer.written.load(.acquire) == writer.given;
        }

        pub fn sync(writer: *Writer) void {
            if (writer.synced.load(.acquire) == writer.given) return;
            _ = writer.give(.sync, 0, "", 0);
        }

        /// Tries whether a disk that refused takes records again. Runs once a second.
        pub fn probe(writer: *Writer) void {
            if (writer.refuses.load(.acquire)) _ = writer.give(.probe, 0, "", 0);
        }

        pub fn needsCompaction(writer: *const Writer) bool {
            return writer.is_long.load(.acquire);
        }

        /// `live`: the keys to keep; null: all. Call it again while `needsCompaction`.
        pub fn compact(writer: *Writer, live: ?[]const Key) void {
            const is_given = if (live) |keys|
                writer.give(.compact, 1, std.mem.sliceAsBytes(keys), 0)
            else
                writer.give(.compact, 0, "", 0);
            if (is_given) writer.is_long.store(false, .release);
        }

        fn give(
            writer: *Writer,
            operation: Operation,
            key: Key,
            bytes: []const u8,
            reserve: usize,
        ) bool {
            const header: Header =
                .{ .operation = @backingInt(operation), .key = @bitCast(key) };
            const parts: [2][]const u8 = .{ std.mem.asBytes(&header), bytes };
            return writer.worker.give(writer.task(), &parts, reserve);
        }

        fn task(writer: *Writer) Worker.Task {
            return .{ .context = writer, .run = run };
        }

        // The worker calls these.

        const Job = struct {
            operation: Operation,
            key: Key,
            bytes: []const u8,

            fn of(job: []const u8) Job {
                const header = std.mem.bytesToValue(Header, job[0..@sizeOf(Header)]);
                return .{
                    .operation = @fromBackingInt(header.operation),
                    .key = @bitCast(header.key),
                    .bytes = job[@sizeOf(Header)..],
                };
            }
        };

        /// Writes everything, syncs once if anybody waits for it, and sends the packets last.
        fn run(context: *anyopaque, jobs: *Worker.Jobs) void {
            const writer: *Writer = @ptrCast(@alignCast(context));
            var packets = jobs.*;
            var needs_sync = false;
            while (jobs.next()) |bytes| {
                const job: Job = .of(bytes);
                switch (job.operation) {
                    .append, .end => writer.take(&job),
                    .compact => writer.runCompaction(&job),
                    .probe => if (writer.is_refused) writer.onDisk(writer.file.probe()),
                    .sync, .send_synced => needs_sync = true,
                    .send, .wake => {},
                }
            }
            writer.flush();
            if (needs_sync) writer.runSync();
            while (packets.next()) |bytes| {
                const job: Job = .of(bytes);
                switch (job.operation) {
                    .send, .send_synced => {
                        const head =
                            std.mem.bytesToValue(PacketHead, job.bytes[0..@sizeOf(PacketHead)]);
                        head.socket.send(head.to, job.bytes[@sizeOf(PacketHead)..]);
                    },
                    .wake => sys.wake(@intCast(job.key)),
                    .append, .end, .compact, .probe, .sync => {},
                }
            }
            if (writer.file.needsCompaction() and !writer.is_incomplete)
                writer.is_long.store(true, .release);
        }

        fn take(writer: *Writer, job: *const Job) void {
            if (writer.pending.isFull() or writer.buffered + job.bytes.len > writer.buffer.len)
                writer.flush();
            @memcpy(writer.buffer[writer.buffered..][0..job.bytes.len], job.bytes);
            writer.buffered += job.bytes.len;
            writer.pending.appendAssumeCapacity(.{
                .key = job.key,
                .size = @intCast(job.bytes.len),
                .is_end = job.operation == .end,
            });
        }

        /// Writes the records in the buffer: all at once, or, where the disk refuses that, as many
        /// as it takes.
        fn flush(writer: *Writer) void {
            const pending = writer.pending.constSlice();
            if (pending.len == 0) return;
            const offset_before = writer.file.end;
            const bytes = writer.buffer[0..writer.buffered];
            const fits = writer.file.appendAll(bytes);
            var offset: usize = 0;
            var is_refused = false;
            for (pending) |*record| {
                const frame = bytes[offset..][0..record.size];
                const end_of_frame = if (fits) offset_before + offset + record.size else blk: {
                    if (!writer.file.append(frame)) is_refused = true;
                    break :blk writer.file.end;
                };
                offset += record.size;
                if (is_refused) continue;
                if (record.is_end) writer.noteReadEnd(record.key) else writer.noteRead(
                    record.key,
                    record.size,
                    end_of_frame,
                );
            }
            writer.onDisk(!is_refused);
            writer.add(&writer.written_bytes, writer.file.end - offset_before);
            writer.add(&writer.written, pending.len);
            writer.pending.clear();
            writer.buffered = 0;
        }

        fn runSync(writer: *Writer) void {
            const count = writer.written.load(.monotonic);
            if (writer.synced.load(.monotonic) == count) return;
            const is_synced = writer.file.sync();
            writer.onDisk(is_synced);
            // The kernel gives up what it could not write: the records are written once more.
            if (is_synced) writer.synced.store(count, .release) else {
                if (!writer.is_incomplete) writer.is_long.store(true, .release);
            }
        }

        fn runCompaction(writer: *Writer, job: *const Job) void {
            writer.flush();
            if (writer.is_incomplete) return;
            const has_keys = job.key != 0;
            var keys = job.bytes;
            for (writer.latest.values()) |*place| place.is_live = !has_keys;
            while (keys.len > 0) : (keys = keys[@sizeOf(Key)..]) {
                const key: Key = @bitCast(keys[0..@sizeOf(Key)].*);
                if (writer.latest.getPtr(key)) |place| place.is_live = true;
            }
            const is_compacted = writer.file.compact(writer, copyLatest);
            writer.onDisk(is_compacted);
            if (!is_compacted) return;
            writer.dropDead();
            writer.synced.store(writer.written.load(.monotonic), .release);
        }

        /// In the order in which the keys came.
        fn copyLatest(writer: *Writer, fresh: *Journal.Compaction) sys.Error!void {
            assert(writer.buffered == 0);
            var used: usize = 0;
            for (writer.latest.values()) |*place| {
                if (!place.is_live) continue;
                if (used + place.size > writer.buffer.len) {
                    try fresh.appendAll(writer.buffer[0..used]);
                    used = 0;
                }
                const frame = writer.buffer[used..][0..place.size];
                const count = try sys.readAt(writer.file.fd, frame, place.offset);
                // What the disk has damaged since is left out.
                const is_whole = count == place.size and Format.frameSize(frame) == place.size;
                place.is_live = is_whole;
                if (is_whole) used += place.size;
            }
            if (used > 0) try fresh.appendAll(writer.buffer[0..used]);
            writer.add(&writer.written_bytes, fresh.end);
        }

        /// The file has the live records only, in the order of the index.
        fn dropDead(writer: *Writer) void {
            var offset: u64 = 0;
            var kept: Index = .empty;
            kept.ensureTotalCapacity(writer.gpa, writer.latest.count()) catch {
                writer.is_incomplete = true;
                return;
            };
            for (writer.latest.keys(), writer.latest.values()) |key, place| {
                if (!place.is_live) continue;
                kept.putAssumeCapacity(key, .{ .offset = offset, .size = place.size });
                offset += place.size;
            }
            assert(offset == writer.file.end);
            writer.latest.deinit(writer.gpa);
            writer.latest = kept;
        }

        fn add(_: *Writer, counter: *std.atomic.Value(u64), count: u64) void {
            counter.store(counter.load(.monotonic) + count, .release);
        }

        /// An edge whose disk refuses continues; only a restart would show it.
        fn onDisk(writer: *Writer, is_well: bool) void {
            if (writer.is_refused == !is_well) return;
            writer.is_refused = !is_well;
            writer.refuses.store(!is_well, .release);
            if (is_well) writer.is_recovered.store(true, .release);
            if (writer.problem) |problem| health.set(problem, !is_well);
        }
    };
}

const testing = std.testing;
const record_frame = @import("core").uplink.record_frame;
const TestFormat = journal_file.Framed("test", 256);
const TestWriter = JournalWriter(TestFormat);

const Bench = struct {
    tmp: testing.TmpDir,
    worker: Worker,
    writer: TestWriter,

    fn init(bench: *Bench) !void {
        bench.tmp = testing.tmpDir(.{});
        bench.worker = try .init(testing.io, 1 << 20);
        try bench.open();
    }

    fn open(bench: *Bench) !void {
        bench.writer = try .init(testing.allocator, &bench.worker, .open(bench.tmp.dir.handle));
    }

    fn deinit(bench: *Bench) void {
        bench.writer.deinit();
        bench.worker.deinit();
        bench.tmp.cleanup();
    }

    fn append(bench: *Bench, key: u128, number: u64) bool {
        var buffer: [64]u8 = undefined;
        return bench.writer.append(key, record_frame.encode(number, "record", &buffer));
    }

    /// The numbers of the records in the file.
    fn expect(bench: *Bench, numbers: []const u64) !void {
        bench.worker.finish();
        var reader = bench.writer.file.reader();
        for (numbers) |number|
            try testing.expectEqual(number, record_frame.decode((try reader.next()).?).?.number);
        try testing.expectEqual(null, try reader.next());
    }
};

test "records are in the file in their order, and only the latest ones after a compaction" {
    var bench: Bench = undefined;
    try bench.init();
    defer bench.deinit();
    for ([_]u128{ 7, 8, 7, 9, 8 }, 0..) |key, number|
        try testing.expect(bench.append(key, number));
    try testing.expect(!bench.writer.isWritten());
    try bench.expect(&.{ 0, 1, 2, 3, 4 });
    try testing.expect(bench.writer.isWritten());
    bench.writer.compact(null);
    try testing.expect(bench.append(9, 5));
    try bench.expect(&.{ 2, 4, 3, 5 });
    bench.writer.compact(&.{ 9, 7 });
    try bench.expect(&.{ 2, 5 });
    bench.writer.compact(null);
    try bench.expect(&.{ 2, 5 });
    try testing.expectEqual(bench.writer.given, bench.writer.synced.load(.acquire));
}

test "a descriptor is written to when the records before it are with the kernel" {
    var bench: Bench = undefined;
    try bench.init();
    defer bench.deinit();
    const fd: i32 = @intCast(try sys.check(std.os.linux.eventfd(0, std.os.linux.EFD.NONBLOCK)));
    defer sys.close(fd);
    try testing.expect(bench.append(7, 0));
    try testing.expect(bench.writer.wakeWritten(fd));
    var count: u64 = 0;
    const read = std.os.linux.read;
    try testing.expectError(error.WouldBlock, sys.check(read(fd, @ptrCast(&count), 8)));
    bench.worker.finish();
    try testing.expect(bench.writer.isWritten());
    try testing.expectEqual(8, try sys.check(read(fd, @ptrCast(&count), 8)));
}

test "the last record of a key takes all earlier ones with it" {
    var bench: Bench = undefined;
    try bench.init();
    defer bench.deinit();
    try testing.expect(bench.append(7, 0));
    try testing.expect(bench.append(8, 1));
    var buffer: [64]u8 = undefined;
    try testing.expect(bench.writer.end(7, record_frame.encode(2, "over", &buffer)));
    try bench.expect(&.{ 0, 1, 2 });
    bench.writer.compact(null);
    try bench.expect(&.{1});
}

test "a compaction is due when the file is long, and not again before it has grown" {
    var bench: Bench = undefined;
    try bench.init();
    defer bench.deinit();
    for (0..16) |number| {
        try testing.expect(bench.append(number, number));
        bench.worker.finish();
    }
    try testing.expect(bench.writer.needsCompaction());
    bench.writer.compact(null);
    bench.worker.finish();
    const written_bytes = bench.writer.written_bytes.load(.acquire);
    for (0..1000) |_| {
        if (bench.writer.needsCompaction()) bench.writer.compact(null);
        bench.writer.sync();
        bench.worker.finish();
    }
    try testing.expectEqual(written_bytes, bench.writer.written_bytes.load(.acquire));
}

test "a full worker refuses a record, and nothing of it counts" {
    var bench: Bench = undefined;
    try bench.init();
    defer bench.deinit();
    bench.worker.deinit();
    bench.worker = try .init(testing.io, reserve_size + 4096);
    while (bench.append(1, bench.writer.given)) {}
    const count = bench.writer.given;
    try testing.expect(count > 0);
    var buffer: [64]u8 = undefined;
    try testing.expect(bench.writer.end(2, record_frame.encode(9, "over", &buffer)));
    bench.worker.finish();
    try testing.expectEqual(count + 1, bench.writer.written.load(.acquire));
    try testing.expect(bench.append(1, 1));
}
