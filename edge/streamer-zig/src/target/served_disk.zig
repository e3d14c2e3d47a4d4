//! The loop that reads the disk from the edge: wanted reads from the process that the kernel's disk
//! hangs on, the stream's packets, and the few words of the control socket. It allocates nothing.
//! When it ends, another process goes on in its place (`disk_keeper.zig`); what that one has to
//! know is in the shared memory.

const std = @import("std");
const linux = std.os.linux;
const core = @import("core");
const wire = @import("wire");
const sys = @import("host").sys;
const say = @import("console.zig").say;
const sys_time = @import("sys_time.zig");
const EdgeSocket = @import("edge_socket.zig").EdgeSocket;
const Silence = @import("silence.zig").Silence;
const silence_look_us = @import("silence.zig").look_interval_us;
const GuestReport = @import("guest_report.zig").GuestReport;
const PowerOrder = @import("power_order.zig").PowerOrder;
const StepList = @import("timings/step_list.zig").StepList;
const system_end = @import("system_end.zig");
const control = @import("control_socket.zig");
const disk_link = @import("disk_link.zig");
const http_report = @import("http_report.zig");
const SharedMemory = @import("shared_memory.zig").SharedMemory;

/// Packets taken before the kernel's side gets its turn.
const packets_per_turn_max = 256;

pub const ServedDisk = struct {
    client: *core.StreamClient,
    edge: *EdgeSocket,
    memory: *SharedMemory,
    /// To the process that the kernel's disk hangs on.
    link_fd: i32,
    /// How many processes have done this before.
    serial: u32,
    reads_waiting: u32 = 0,
    server: ?control.Server,
    proc: system_end.ProcFolder,
    /// Of the kernel's command line.
    words: []const u8,
    silence: Silence = .{},
    report: GuestReport = .{},
    order: PowerOrder = .{},

    /// Serves until the other process has gone.
    pub fn run(disk: *ServedDisk) disk_link.Error!void {
        disk.goOnFromBefore();
        while (true) {
            const now_us = sys.monotonicUs();
            disk.receivePackets(now_us);
            try disk.takeEvents();
            try disk.takeRequests();
            disk.report.tend(disk.client, now_us);
            disk.transmit(now_us);
            disk.carryOutOrder(now_us);
            disk.silence.watch(disk.client, disk.edge, now_us);
            disk.wait();
        }
    }

    /// Says again what an earlier process said, in case the edge has not heard it.
    fn goOnFromBefore(disk: *ServedDisk) void {
        if (disk.memory.steps.get()) |steps| disk.report.steps = steps;
        if (disk.memory.cache_path.get()) |path| _ = disk.watchPath(path.slice());
        if (disk.memory.order.get()) |order| disk.order = order;
        const kept = disk.memory.outcome.get() orelse return;
        disk.report.has_outcome = true;
        disk.client.reportReady(sys.monotonicUs(), kept.outcome, kept.uptime_us, .{
            .code = kept.code.slice(),
            .sentence = kept.sentence.slice(),
        });
    }

    fn receivePackets(disk: *ServedDisk, now_us: u64) void {
        var buffer: [wire.stream.packet_size_max]u8 = undefined;
        for (0..packets_per_turn_max) |_| {
            const packet = disk.edge.receive(&buffer) orelse return;
            disk.silence.heard(now_us);
            disk.client.receive(now_us, packet);
        }
    }

    fn takeEvents(disk: *ServedDisk) disk_link.Error!void {
        while (disk.client.nextEvent()) |event| switch (event) {
            .read_done => |done| try disk.answer(done.tag, .done),
            .read_failed => |failure| {
                say("the edge cannot serve a read: {t}", .{failure.code});
                try disk.answer(failure.tag, .failed);
            },
            .established => |session| if (session.resumed)
                say("the edge {f} serves the disk again", .{disk.edge.edge}),
            .refused => |code| {
                say("the edge refused to go on with this boot ({t}); the disk stands still", .{code});
                if (code == .cache_lost) disk.tellLost();
            },
            .cache_lost => disk.tellLost(),
            .write_ended => |ended| try disk.answerWrite(ended.tag, ended.code),
            .version_changed => say("the edge has another version of the disk than this boot began with; the disk stands still", .{}),
            .ready_acknowledged => if (disk.server) |*server| server.acknowledge(control.done),
            .order => |order| disk.takeOrder(order.kind),
            .report_acknowledged => disk.order.acknowledged(),
        };
    }

    fn takeOrder(disk: *ServedDisk, kind: core.StreamClient.Order.Kind) void {
        if (!disk.order.take(kind, sys.monotonicUs())) return;
        disk.memory.order.set(disk.order);
        say("the edge orders this machine to {s}", .{switch (kind) {
            .power_off => "power off",
            .restart => "restart",
        }});
    }

    fn carryOutOrder(disk: *ServedDisk, now_us: u64) void {
        const action = disk.order.next(now_us) orelse return;
        switch (action) {
            .ask_system => |kind| {
                if (!system_end.askSystem(disk.proc, kind)) disk.order.systemCannotEnd();
            },
            .sync => |kind| {
                say("the system has not ended the machine; the kernel does it now", .{});
                system_end.syncAndEnd(disk.proc, kind);
            },
            .ask_kernel => |kind| system_end.askKernel(kind),
        }
        disk.memory.order.set(disk.order);
    }

    fn transmit(disk: *ServedDisk, now_us: u64) void {
        var out: [wire.stream.request_size_max]u8 = undefined;
        while (disk.client.transmit(now_us, &out)) |packet| disk.edge.send(packet);
    }

    fn takeRequests(disk: *ServedDisk) disk_link.Error!void {
        while (try disk_link.receive(disk_link.Request, disk.link_fd)) |request| {
            disk.submit(&request) catch
                unreachable; // The client has as many reads and writes as the queue has slots.
            disk.reads_waiting += 1;
        }
    }

    fn submit(disk: *ServedDisk, request: *const disk_link.Request) error{Full}!void {
        const slot = request.slot;
        switch (request.kind) {
            .read => return disk.client.submit(slot, request.offset, disk.memory.buffers[slot][0..request.length]),
            .write => try disk.client.submitWrite(slot, request.offset, disk.memory.buffers[slot][0..request.length]),
            .discard => try disk.client.submitDiscard(slot, request.offset, request.length),
            .flush => try disk.client.submitFlush(slot),
        }
        disk.memory.write_id.store(disk.client.writes.request_id_next, .seq_cst);
    }

    fn answerWrite(disk: *ServedDisk, tag: u64, code: wire.stream.WriteCode) disk_link.Error!void {
        switch (code) {
            .done => return disk.answer(tag, .done),
            .cache_full => say("the write cache at the edge is full: a write failed", .{}),
            else => say("the edge cannot take a write: {t}", .{code}),
        }
        return disk.answer(tag, if (code == .cache_full) .full else .failed);
    }

    /// Nothing of the disk can be believed any more: it stands still, and the edge learns why.
    fn tellLost(disk: *ServedDisk) void {
        const text = "the edge does not have any more what this machine has written";
        say(text ++ "; the disk stands still, start it again", .{});
        // In a process of its own, since a connection takes seconds.
        const pid = sys.check(linux.fork()) catch return;
        if (pid != 0) return;
        if (http_report.Address.find(disk.words)) |address| _ = http_report.post(address, .failed, "cache_lost " ++ text);
        linux.exit_group(0);
    }

    fn answer(disk: *ServedDisk, tag: u64, result: disk_link.Result) disk_link.Error!void {
        disk.reads_waiting -= 1;
        try disk_link.send(
            disk.link_fd,
            disk_link.Answer{ .slot = @intCast(tag), .result = result },
        );
    }

    fn wait(disk: *ServedDisk) void {
        var polled: [3 + control.clients_max]linux.pollfd = undefined;
        for (&polled) |*entry| entry.* = .{ .fd = -1, .events = linux.POLL.IN, .revents = 0 };
        polled[0].fd = disk.edge.fd;
        polled[1].fd = disk.link_fd;
        if (disk.server) |*server| {
            if (server.hasRoom()) polled[2].fd = server.fd;
            for (polled[3..], server.clients) |*entry, client| entry.fd = client;
        }
        var timeout = disk.timeUntilDeadline();
        _ = linux.ppoll(&polled, polled.len, &timeout, null);
        if (disk.server == null) return;
        if (polled[2].revents != 0) disk.server.?.accept();
        for (polled[3..], 0..) |entry, index| if (entry.revents != 0) disk.serveControl(index);
    }

    fn timeUntilDeadline(disk: *const ServedDisk) linux.timespec {
        const now_us = sys.monotonicUs();
        var at_us = @min(now_us + silence_look_us, disk.report.deadline());
        if (disk.client.deadline()) |client_at_us| at_us = @min(at_us, client_at_us);
        if (disk.order.deadline()) |order_at_us| at_us = @min(at_us, order_at_us);
        return sys_time.timespecOf(at_us -| now_us);
    }

    fn serveControl(disk: *ServedDisk, index: usize) void {
        const server = &disk.server.?;
        var buffer: [control.message_size_max]u8 = undefined;
        const request = server.receive(index, &buffer) orelse return;
        const verb, const rest = std.mem.cutScalar(u8, request, ' ') orelse .{ request, "" };
        if (std.mem.eql(u8, verb, "ready")) return disk.reportOutcome(index, .ready, rest);
        if (std.mem.eql(u8, verb, "failed")) return disk.reportOutcome(index, .failed, rest);
        if (std.mem.eql(u8, verb, "steps")) return server.answer(index, disk.takeSteps(rest));
        if (std.mem.eql(u8, verb, "cache")) return server.answer(index, disk.watchCache(rest));
        if (!std.mem.eql(u8, verb, "status")) return server.answer(index, "unknown request");
        var text: [control.message_size_max]u8 = undefined;
        server.answer(index, disk.status(&text));
    }

    /// `words` are a code and a sentence.
    fn reportOutcome(
        disk: *ServedDisk,
        index: usize,
        outcome: wire.stream.ReadyOutcome,
        words: []const u8,
    ) void {
        const code, const sentence = std.mem.cutScalar(u8, words, ' ') orelse .{ words, "" };
        const uptime_us = sys_time.uptimeUs();
        disk.report.has_outcome = true;
        disk.memory.outcome.set(.{
            .outcome = outcome,
            .uptime_us = uptime_us,
            .code = .init(code),
            .sentence = .init(sentence),
        });
        disk.client.reportReady(sys.monotonicUs(), outcome, uptime_us, .{
            .code = code,
            .sentence = sentence,
        });
        disk.server.?.waiting[index] = true;
    }

    fn takeSteps(disk: *ServedDisk, text: []const u8) []const u8 {
        const list = StepList.parse(text) catch return "not steps";
        disk.report.setSteps(&list);
        disk.memory.steps.set(disk.report.steps);
        return control.done;
    }

    fn watchCache(disk: *ServedDisk, path: []const u8) []const u8 {
        if (!disk.watchPath(path)) return "there is no such folder";
        disk.memory.cache_path.set(.init(path));
        return control.done;
    }

    fn watchPath(disk: *ServedDisk, path: []const u8) bool {
        var buffer: [control.message_size_max + 1]u8 = undefined;
        return disk.report.watch(std.mem.printSentinel(&buffer, "{s}", .{path}, 0) catch
            unreachable); // A message has no longer path.
    }

    fn status(disk: *const ServedDisk, buffer: *[control.message_size_max]u8) []const u8 {
        var writer: std.Io.Writer = .fixed(buffer);
        const s = &disk.client.statistics;
        var edge_text: [@TypeOf(disk.edge.edge).text_size_max]u8 = undefined;
        std.json.Stringify.value(.{
            .edge = std.mem.print(
                &edge_text,
                "{f}",
                .{disk.edge.edge},
            ) catch unreachable, // It has room for the longest.
            .state = disk.client.state,
            .diskSize = if (disk.client.session) |session| session.disk_size else 0,
            .readsWaiting = disk.reads_waiting,
            .reads = s.reads,
            .readBytes = s.read_bytes,
            .packetsIn = s.packets_in,
            .packetsOut = s.packets_out,
            .repeats = s.repeats,
            .missingFragments = s.missing_fragments,
            .resumptions = s.resumptions,
            .pid = linux.getpid(),
            .processesBefore = disk.serial,
            .ignored = s.ignored,
            .writeCache = if (disk.report.level.size_bytes == 0) null else .{
                .usedBytes = disk.report.level.used_bytes,
                .sizeBytes = disk.report.level.size_bytes,
            },
        }, .{}, &writer) catch return "the status does not fit";
        return writer.buffered();
    }
};
