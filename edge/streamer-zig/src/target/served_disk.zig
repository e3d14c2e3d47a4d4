//! The loop that serves the disk: the kernel's requests from one socket, the stream's packets on the other, and the few
//! words of the control socket. It allocates nothing; the buffers of all reads are part of the program.

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
const KernelSocket = @import("kernel_socket.zig").KernelSocket;

/// Packets taken before the kernel's side gets its turn.
const packets_per_turn_max = 256;

pub const ServedDisk = struct {
    client: *core.StreamClient,
    edge: *EdgeSocket,
    kernel: *KernelSocket,
    server: ?control.Server,
    proc: system_end.ProcFolder,
    silence: Silence = .{},
    report: GuestReport = .{},
    order: PowerOrder = .{},

    /// Serves until the kernel closes the device.
    pub fn run(disk: *ServedDisk) KernelSocket.Error!void {
        while (true) {
            const now_us = sys.monotonicUs();
            disk.receivePackets(now_us);
            try disk.takeEvents();
            try disk.serveKernel();
            disk.report.tend(disk.client, now_us);
            disk.transmit(now_us);
            disk.carryOutOrder(now_us);
            disk.silence.watch(disk.client, disk.edge, now_us);
            try disk.wait();
        }
    }

    fn receivePackets(disk: *ServedDisk, now_us: u64) void {
        var buffer: [wire.stream.packet_size_max]u8 = undefined;
        for (0..packets_per_turn_max) |_| {
            const packet = disk.edge.receive(&buffer) orelse return;
            disk.silence.heard(now_us);
            disk.client.receive(now_us, packet);
        }
    }

    fn takeEvents(disk: *ServedDisk) KernelSocket.Error!void {
        while (disk.client.nextEvent()) |event| switch (event) {
            .read_done => |done| disk.kernel.queue.complete(@intCast(done.tag)),
            .read_failed => |failure| {
                say("the edge cannot serve a read: {t}", .{failure.code});
                disk.kernel.queue.fail(@intCast(failure.tag)) catch return error.KernelGone;
            },
            .established => |session| if (session.resumed)
                say("the edge {f} serves the disk again", .{disk.edge.edge}),
            .refused => |code| say("the edge refused to go on with this boot ({t}); the disk stands still", .{code}),
            .version_changed => say("the edge has another version of the disk than this boot began with; the disk stands still", .{}),
            .ready_acknowledged => if (disk.server) |*server| server.acknowledge(control.done),
            .order => |order| disk.takeOrder(order.kind),
            .report_acknowledged => disk.order.acknowledged(),
        };
    }

    fn takeOrder(disk: *ServedDisk, kind: core.StreamClient.Order.Kind) void {
        if (!disk.order.take(kind, sys.monotonicUs())) return;
        say("the edge orders this machine to {s}", .{switch (kind) {
            .power_off => "power off",
            .restart => "restart",
        }});
    }

    fn carryOutOrder(disk: *ServedDisk, now_us: u64) void {
        switch (disk.order.next(now_us) orelse return) {
            .ask_system => |kind| if (!system_end.askSystem(disk.proc, kind)) disk.order.systemCannotEnd(),
            .sync => |kind| {
                say("no system ends by itself; the machine ends at once", .{});
                system_end.syncAndEnd(disk.proc, kind);
            },
            .ask_kernel => |kind| system_end.askKernel(kind),
        }
    }

    fn transmit(disk: *ServedDisk, now_us: u64) void {
        var out: [wire.stream.request_size_max]u8 = undefined;
        while (disk.client.transmit(now_us, &out)) |packet| disk.edge.send(packet);
    }

    /// Moves requests and replies until the kernel's socket is empty or full, or every slot is taken.
    fn serveKernel(disk: *ServedDisk) KernelSocket.Error!void {
        while (true) {
            const sent_any = try disk.kernel.sendReplies();
            const took_any = try disk.kernel.takeRequests();
            while (disk.kernel.nextRead()) |read| {
                disk.client.submit(read.slot, read.offset, read.buffer) catch
                    unreachable; // The client has as many reads as the queue has slots.
            }
            if (!sent_any and !took_any) return;
        }
    }

    fn wait(disk: *ServedDisk) KernelSocket.Error!void {
        var polled: [3 + control.clients_max]linux.pollfd = undefined;
        for (&polled) |*entry| entry.* = .{ .fd = -1, .events = linux.POLL.IN, .revents = 0 };
        polled[0].fd = disk.edge.fd;
        polled[1] = .{ .fd = disk.kernel.fd, .events = disk.kernel.pollEvents(), .revents = 0 };
        if (disk.server) |*server| {
            if (server.hasRoom()) polled[2].fd = server.fd;
            for (polled[3..], server.clients) |*entry, client| entry.fd = client;
        }
        var timeout = disk.timeUntilDeadline();
        _ = linux.ppoll(&polled, polled.len, &timeout, null);
        const gone: i16 = linux.POLL.HUP | linux.POLL.ERR;
        if (polled[1].revents & gone != 0) return error.KernelGone;
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
        disk.report.has_outcome = true;
        disk.client.reportReady(sys.monotonicUs(), outcome, sys_time.uptimeUs(), .{
            .code = code,
            .sentence = sentence,
        });
        disk.server.?.waiting[index] = true;
    }

    fn takeSteps(disk: *ServedDisk, text: []const u8) []const u8 {
        const list = StepList.parse(text) catch return "not steps";
        disk.report.setSteps(&list);
        return control.done;
    }

    fn watchCache(disk: *ServedDisk, path: []const u8) []const u8 {
        var buffer: [control.message_size_max]u8 = undefined;
        const terminated = std.mem.printSentinel(&buffer, "{s}", .{path}, 0) catch unreachable;
        return if (disk.report.watch(terminated)) control.done else "there is no such folder";
    }

    fn status(disk: *const ServedDisk, buffer: *[control.message_size_max]u8) []const u8 {
        var writer: std.Io.Writer = .fixed(buffer);
        const s = &disk.client.statistics;
        var edge_text: [@TypeOf(disk.edge.edge).text_size_max]u8 = undefined;
        std.json.Stringify.value(.{
            .edge = std.mem.print(&edge_text, "{f}", .{disk.edge.edge}) catch unreachable, // It has room for the longest.
            .state = disk.client.state,
            .diskSize = disk.kernel.queue.disk_size,
            .readsWaiting = disk.kernel.queue.readingCount(),
            .reads = s.reads,
            .readBytes = s.read_bytes,
            .packetsIn = s.packets_in,
            .packetsOut = s.packets_out,
            .repeats = s.repeats,
            .missingFragments = s.missing_fragments,
            .resumptions = s.resumptions,
            .ignored = s.ignored,
            .writeCache = if (disk.report.level.size_bytes == 0) null else .{
                .usedBytes = disk.report.level.used_bytes,
                .sizeBytes = disk.report.level.size_bytes,
            },
        }, .{}, &writer) catch return "the status does not fit";
        return writer.buffered();
    }
};
