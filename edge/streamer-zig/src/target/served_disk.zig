//! The event loop that reads the disk from the edge: requests from the process that holds the
//! kernel's disk, packets of the stream, and commands of the control socket. It allocates nothing.
//! When it ends, another process takes over (`disk_keeper.zig`); the state that the next process
//! needs is in the shared memory.

const std = @import("std");
const linux = std.os.linux;
const core = @import("core");
const wire = @import("wire");
const sys = @import("host").sys;
const say = @import("console.zig").say;
const sys_time = @import("sys_time.zig");
const EdgeSocket = @import("edge_socket.zig");
const NetworkCard = @import("machine/network_card.zig");
const Refusals = @import("refusals.zig");
const Silence = @import("silence.zig");
const silence_look_us = @import("silence.zig").look_interval_us;
const GuestReport = @import("guest_report.zig");
const PowerOrder = @import("power_order.zig");
const StepList = @import("timings/step_list.zig");
const system_end = @import("system_end.zig");
const control = @import("control_socket.zig");
const disk_link = @import("disk_link.zig");
const account = @import("trace/send.zig");
const ahead_cache = @import("ahead_cache.zig");
const http_report = @import("http_report.zig");
const RamCache = @import("ram_cache.zig");
const LocalWorker = @import("local_disk/local_worker.zig");
const SharedMemory = @import("shared_memory.zig").SharedMemory;

/// Packets handled before the kernel's side gets its turn; the last ones arrive together.
const packets_per_turn_max = 256;
const LostDisk = core.target.LostDisk;
const lost_at_the_edge = "the edge has lost the writes of this machine";
/// A machine that has not reported ready by then frees its read-ahead memory.
const ahead_us_max = 600 * std.time.us_per_s;

pub const ServedDisk = @This();

client: *core.stream.Client,
edge: *EdgeSocket,
memory: *SharedMemory,
/// Link to the process that holds the kernel's disk.
link_fd: i32,
/// Number of earlier processes.
serial: u32,
reads_waiting: u32 = 0,
server: ?control.Server,
proc: system_end.ProcFolder,
card: NetworkCard,
/// From the kernel's command line.
words: []const u8,
silence: Silence = .{},
report: GuestReport = .{},
order: PowerOrder = .{},
lost_policy: LostDisk.Policy,
/// Null as long as there is hope for the disk.
lost: ?LostDisk = null,
was_full_reported: bool = false,
was_left_reported: bool = false,
refusals: Refusals = .{},
/// Null if all writes go to the edge.
ram: ?*RamCache = null,
/// Takes writes that do not fit in memory, instead of the edge.
local: ?*LocalWorker = null,
/// Action when the write cache is full.
full: core.uplink.desired_state.WriteCacheFull = .stop,
/// The pending request of each slot.
requests: [core.target.nbd_queue.slots_max]disk_link.Request = undefined,
/// Reads ahead of demand during the boot; null before and after.
ahead: ?core.profile.ReadAhead = null,
ahead_until_us: u64 = 0,
ahead_statistics: core.profile.ReadAhead.Statistics = .{},
/// Longest wait of the system for one read, also after the boot.
longest_wait_us: u64 = 0,
/// Time of this turn of the loop.
now_us: u64 = 0,
/// When the system requested the read of each slot.
demanded_at_us: [core.target.nbd_queue.slots_max]u64 = undefined,

/// Serves until the other process has gone.
pub fn run(disk: *ServedDisk) disk_link.Error!void {
    disk.report.ram = disk.ram;
    if (disk.local) |local| disk.report.local = local.cache;
    disk.report.is_full = disk.memory.is_full.load(.seq_cst);
    disk.goOnFromBefore();
    if (disk.ahead) |*ahead| ahead.start(disk.client);
    disk.ahead_until_us = sys.monotonicUs() + ahead_us_max;
    while (true) {
        const now_us = sys.monotonicUs();
        disk.now_us = now_us;
        disk.receivePackets(now_us);
        try disk.takeEvents();
        try disk.takeRequests();
        try disk.takeFromLocal();
        try disk.tendAhead(now_us);
        if (disk.report.isDue(now_us)) disk.lookAtCard();
        disk.report.tend(disk.client, now_us);
        disk.transmit(now_us);
        disk.carryOutOrder(now_us);
        disk.silence.watch(disk.client, disk.edge, now_us);
        disk.wait();
    }
}

fn lookAtCard(disk: *ServedDisk) void {
    if (disk.card.read(disk.edge.fd)) |figures| disk.client.identity.card = figures;
}

/// Repeats what an earlier process reported, in case the edge has not received it.
fn goOnFromBefore(disk: *ServedDisk) void {
    if (disk.memory.steps.get()) |steps| disk.report.steps = steps;
    if (disk.memory.cache_path.get()) |path| _ = disk.watchPath(path.slice());
    if (disk.memory.order.get()) |order| disk.order = order;
    disk.lost = disk.memory.lost.get();
    if (disk.memory.has_handed_over.load(.seq_cst)) disk.client.times.beginSystem();
    const kept = disk.memory.outcome.get() orelse return;
    disk.report.has_outcome = true;
    disk.client.reportReady(sys.monotonicUs(), kept.outcome, kept.uptime_us, .{
        .code = kept.code.slice(),
        .sentence = kept.sentence.slice(),
    });
}

fn receivePackets(disk: *ServedDisk, now_us: u64) void {
    var taken: usize = 0;
    while (taken < packets_per_turn_max) {
        var packets = disk.edge.receive() orelse return;
        while (packets.next()) |packet| : (taken += 1) disk.client.receive(now_us, packet);
        // Another edge that only refuses is not serving.
        if (disk.client.state == .established or
            disk.client.failover.isAtOwn()) disk.silence.heard(now_us);
    }
}

fn takeEvents(disk: *ServedDisk) disk_link.Error!void {
    while (disk.client.nextEvent()) |event| if (!disk.isOfAhead(&event)) switch (event) {
        .read_done => |done| try disk.answer(done.tag, .done),
        .read_failed => |failure| {
            if (failure.code == .stopped) disk.stop();
            if (!disk.isStopped()) say("the edge cannot serve a read: {t}", .{failure.code});
            try disk.answer(failure.tag, .failed);
        },
        .established => |session| {
            disk.memory.session.set(disk.client.session.?);
            disk.was_left_reported = false;
            disk.refusals.clear();
            if (session.resumed) say("the edge {f} serves the disk {s}", .{
                disk.edge.edge, if (session.moved) "now" else "again",
            });
        },
        .refused_elsewhere => |refusal| if (refusal.code == .cache_elsewhere)
            say(
                "this machine's writes are stored on the edge {f}; waiting for it",
                .{disk.client.failover.own},
            )
        else if (disk.refusals.isNew(refusal.edge, refusal.code))
            say("the edge {f} does not take over this boot: {s}", .{
                refusal.edge, Refusals.reasonOf(refusal.code),
            }),
        .refused => |code| {
            say("the edge refused to resume this boot ({t}); the disk is halted", .{code});
            if (code == .cache_lost) disk.reportLost(lost_at_the_edge);
            disk.giveUp();
        },
        .cache_lost => disk.reportLost(lost_at_the_edge),
        .write_ended => |ended| try disk.answerWrite(ended.tag, ended.code),
        .version_changed => {
            say(
                "the edge has another version of the disk than this boot started with; the disk is halted",
                .{},
            );
            disk.giveUp();
        },
        .ready_acknowledged => if (disk.server) |*server|
            server.acknowledge(.outcome, control.done),
        .account_acknowledged => if (disk.server) |*server|
            server.acknowledge(.account, control.done),
        .order => |order| disk.takeOrder(order.kind),
        .report_acknowledged => disk.order.acknowledged(),
        // A resumption carries no signature.
        .sign => unreachable,
    };
}

fn takeOrder(disk: *ServedDisk, kind: core.stream.Client.Order.Kind) void {
    if (!disk.order.take(kind, sys.monotonicUs())) return;
    disk.memory.order.set(disk.order);
    say("the edge orders this machine to {s}", .{switch (kind) {
        .power_off => "power off",
        .restart => "restart",
    }});
}

fn carryOutOrder(disk: *ServedDisk, now_us: u64) void {
    const action = disk.order.next(now_us) orelse return disk.restartIfLost(now_us);
    switch (action) {
        .ask_system => |kind| {
            // A system without its disk cannot stop in order.
            const is_asked = disk.lost == null and system_end.askSystem(disk.proc, kind);
            if (!is_asked) disk.order.systemCannotEnd();
        },
        .sync => |kind| {
            say("the system has not stopped the machine; the kernel stops it now", .{});
            system_end.syncAndEnd(disk.proc, kind);
        },
        .ask_kernel => |kind| system_end.askKernel(kind),
    }
    disk.memory.order.set(disk.order);
}

/// Nothing brings the disk back: this machine restarts, if it is not to wait. The edge of its
/// session learns of it, and an order still reaches it.
fn giveUp(disk: *ServedDisk) void {
    if (disk.lost == null) {
        disk.lost = .init(disk.lost_policy, disk.now_us);
        disk.memory.lost.set(disk.lost.?);
        switch (disk.lost_policy) {
            .restart_after_s => |delay_s| say(
                "the disk is lost for good; restarting this machine in {d} s",
                .{delay_s},
            ),
            .wait => say(
                "the disk is lost for good; restart this machine ({s}wait)",
                .{LostDisk.word},
            ),
        }
    }
    // A session that goes on reports by itself.
    if (disk.client.state == .ended)
        disk.client.reportLost(disk.now_us, disk.lost.?.restart_at_us);
}

/// An order, which may be to power off, takes precedence.
fn restartIfLost(disk: *ServedDisk, now_us: u64) void {
    const lost = if (disk.lost) |*known| known else return;
    if (disk.order.state != .none or !lost.isDue(now_us)) return;
    say("the disk is lost for good; restarting this machine now", .{});
    // Without sync: it would wait for the lost disk.
    system_end.askKernel(.restart);
    say("the kernel refused to restart this machine", .{});
    lost.restart_at_us = null;
}

/// Moves the client to the next edge when its edge does not answer (fail-over).
fn followEdge(disk: *ServedDisk) void {
    const asked = disk.client.failover.current;
    if (disk.edge.edge.eql(asked)) return;
    // Once, however often the edges are tried in turn.
    if (!disk.was_left_reported)
        say("the edge {f} does not answer; failing over to {f}", .{ disk.edge.edge, asked });
    disk.was_left_reported = true;
    disk.edge.edge = asked;
    disk.edge.open();
}

fn transmit(disk: *ServedDisk, now_us: u64) void {
    disk.client.onTimer(now_us);
    disk.followEdge();
    const burst = &disk.edge.burst;
    while (disk.client.transmit(now_us, burst.packetBuffer())) |packet|
        burst.add(disk.edge.fd, packet.len);
    burst.flush(disk.edge.fd);
}

fn takeRequests(disk: *ServedDisk) disk_link.Error!void {
    while (try disk_link.receive(disk_link.Request, disk.link_fd)) |request| {
        if (disk.isStopped()) continue;
        disk.reads_waiting += 1;
        disk.requests[request.slot] = request;
        if (disk.refuses(request.kind)) {
            try disk.finish(request.slot, .full);
            continue;
        }
        const is_done = disk.submit(&request) catch
            unreachable; // The client has as many reads and writes as the queue has slots.
        if (is_done) try disk.answer(request.slot, .done);
    }
}

fn isOfAhead(disk: *ServedDisk, event: *const core.stream.Client.Event) bool {
    return if (disk.ahead) |*ahead| ahead.take(disk.client, event) else false;
}

/// Answers reads from read-ahead and requests more; frees its memory after the boot.
fn tendAhead(disk: *ServedDisk, now_us: u64) disk_link.Error!void {
    const ahead = if (disk.ahead) |*ahead| ahead else return;
    while (ahead.nextDone()) |tag| try disk.answer(tag, .done);
    if (ahead.state != .ended and
        (disk.report.has_outcome or now_us >= disk.ahead_until_us)) ahead.stop(disk.client);
    ahead.pump(disk.client);
    disk.ahead_statistics = ahead.statistics;
    if (!ahead.isIdle() or ahead.waiting_count > 0 or ahead.done_count > 0) return;
    ahead_cache.giveBack(ahead);
    disk.ahead = null;
}

/// Returns true if the request is already done.
fn submit(disk: *ServedDisk, request: *const disk_link.Request) error{Full}!bool {
    const slot = request.slot;
    if (request.kind == .read) {
        disk.demanded_at_us[slot] = disk.now_us;
        disk.client.times.onDemand(disk.now_us);
    }
    if (request.kind == .write or request.kind == .discard) {
        if (disk.ahead) |*ahead| ahead.onWrite(request.offset, request.length);
    }
    switch (request.kind) {
        .read => {
            const bytes = disk.memory.buffers[slot][0..request.length];
            if (disk.ram) |ram| if (ram.hasAll(request.offset, request.length)) return true;
            if (disk.local) |local|
                if (local.cache.hasAll(request.offset, request.length)) return true;
            if (disk.ahead) |*ahead| try ahead.read(
                disk.client,
                slot,
                request.offset,
                bytes,
            ) else try disk.client.submit(slot, request.offset, bytes);
            return false;
        },
        .write => {
            const bytes = disk.memory.buffers[slot][0..request.length];
            const rest = disk.keepInRam(bytes, request.offset) orelse return true;
            if (disk.local) |local| {
                local.submit(.{
                    .offset = rest.offset,
                    .length = rest.length,
                    .slot = slot,
                    .kind = .write,
                    .buffer_at = @intCast(rest.offset - request.offset),
                });
                return false;
            }
            try disk.client.submitWrite(
                slot,
                rest.offset,
                bytes[@intCast(rest.offset - request.offset)..][0..rest.length],
            );
        },
        .discard => {
            if (disk.ram) |ram| ram.discard(request.offset, request.length) catch disk.loseRam();
            if (disk.local) |local| {
                local.submit(.{
                    .offset = request.offset,
                    .length = request.length,
                    .slot = slot,
                    .kind = .discard,
                });
                return false;
            }
            try disk.client.submitDiscard(slot, request.offset, request.length);
        },
        .flush => {
            // It lasts as long as memory, and a write is acknowledged once it is there.
            if (disk.local != null) return true;
            // Data in memory cannot become any safer.
            if (disk.ram != null and !disk.client.writes.is_started) return true;
            try disk.client.submitFlush(slot);
        },
    }
    disk.memory.write_id.store(disk.client.writes.request_id_next, .seq_cst);
    return false;
}

/// Returns the range that the edge must take, or null.
fn keepInRam(disk: *ServedDisk, bytes: []const u8, offset: u64) ?RamCache.Range {
    const all: RamCache.Range = .{ .offset = offset, .length = @intCast(bytes.len) };
    const ram = disk.ram orelse return all;
    return ram.write(bytes, offset) catch {
        disk.loseRam();
        return all;
    };
}

/// The kernel refuses memory that it promised: the data there is no longer reliable.
fn loseRam(disk: *ServedDisk) void {
    if (disk.isStopped()) return;
    disk.memory.is_stopped.store(true, .seq_cst);
    say("this machine's memory for writes is unusable; the disk is halted", .{});
    disk.giveUp();
}

fn answerWrite(disk: *ServedDisk, tag: u64, code: wire.stream.WriteCode) disk_link.Error!void {
    switch (code) {
        .done => return disk.answer(tag, .done),
        .cache_full => {
            if (!disk.was_full_reported) say(
                "the write cache at the edge is full: this machine cannot write until it is restarted",
                .{},
            );
            disk.was_full_reported = true;
        },
        .stopped => disk.stop(),
        else => say("the edge cannot take a write: {t}", .{code}),
    }
    return disk.answer(tag, if (code == .cache_full) .full else .failed);
}

/// Halts the disk because the write cache is full, as configured. Reports continue, and orders
/// arrive with them.
fn stop(disk: *ServedDisk) void {
    if (disk.isStopped()) return;
    disk.memory.is_stopped.store(true, .seq_cst);
    say(
        "the write cache at the edge is full: the disk is halted; enlarge the write cache and restart this machine",
        .{},
    );
}

/// Handles what the local disk's thread has completed.
fn takeFromLocal(disk: *ServedDisk) disk_link.Error!void {
    const local = disk.local orelse return;
    while (local.next()) |ended| switch (ended.result) {
        .done => try disk.finish(ended.slot, .done),
        .full => try disk.fillLocal(ended.slot),
        .lost, .damaged => {
            // This request tells the system; nothing that it sends afterwards is answered.
            try disk.finish(ended.slot, .failed);
            disk.loseLocal(ended.result == .damaged);
        },
    };
}

fn refuses(disk: *const ServedDisk, kind: core.target.NbdQueue.Kind) bool {
    return (kind == .write or kind == .discard) and disk.memory.is_full.load(.seq_cst);
}

fn fillLocal(disk: *ServedDisk, slot: u32) disk_link.Error!void {
    disk.memory.is_full.store(true, .seq_cst);
    disk.report.is_full = true;
    disk.report.look_at_us = 0;
    disk.report.report_at_us = 0;
    if (disk.full == .read_only) {
        if (!disk.was_full_reported) say(
            "the write cache on the local disk is full: this machine cannot write until it is restarted",
            .{},
        );
        disk.was_full_reported = true;
        return disk.finish(slot, .full);
    }
    if (disk.isStopped()) return;
    disk.memory.is_stopped.store(true, .seq_cst);
    say(
        "the write cache on the local disk is full: the disk is halted; enlarge the write cache and restart this machine",
        .{},
    );
}

fn loseLocal(disk: *ServedDisk, is_damaged: bool) void {
    if (disk.isStopped()) return;
    disk.memory.is_stopped.store(true, .seq_cst);
    disk.reportLost(if (is_damaged)
        "the local disk returned other bytes than this machine wrote"
    else
        "the local disk has failed, and the writes on it are lost");
}

fn isStopped(disk: *const ServedDisk) bool {
    return disk.memory.is_stopped.load(.seq_cst);
}

/// The disk is no longer reliable: halts it, and tells the edge that serves it.
fn reportLost(disk: *ServedDisk, text: []const u8) void {
    say("{s}; the disk is halted", .{text});
    defer disk.giveUp();
    if (disk.client.state != .ended) return disk.keepOutcome(.failed, "cache_lost", text);
    // Its own edge has ended the session that began the boot: writes stored at an edge cannot
    // fail over. In a separate process, since a connection takes seconds.
    const pid = sys.check(linux.fork()) catch return;
    if (pid != 0) return;
    if (http_report.Address.find(disk.words)) |address| {
        var body: [http_report.body_size_max]u8 = undefined;
        // It is short.
        _ = http_report.post(
            address,
            .failed,
            std.mem.print(&body, "cache_lost {s}", .{text}) catch unreachable,
        );
    }
    linux.exit_group(0);
}

/// Puts what is on the local disk over the bytes that were read, before the system gets them.
fn answer(disk: *ServedDisk, tag: u64, result: disk_link.Result) disk_link.Error!void {
    const request = &disk.requests[@intCast(tag)];
    if (disk.local) |local| if (result == .done and request.kind == .read and
        local.cache.hasAny(request.offset, request.length))
        return local.submit(
            .{
                .offset = request.offset,
                .length = request.length,
                .slot = request.slot,
                .kind = .read,
            },
        );
    return disk.finish(tag, result);
}

fn finish(disk: *ServedDisk, tag: u64, result: disk_link.Result) disk_link.Error!void {
    disk.reads_waiting -= 1;
    const request = &disk.requests[@intCast(tag)];
    if (disk.ram) |ram| if (result == .done and request.kind == .read) {
        ram.lay(disk.memory.buffers[@intCast(tag)][0..request.length], request.offset) catch
            disk.loseRam();
    };
    if (disk.isStopped()) return;
    if (request.kind == .read) {
        const demanded_at_us = disk.demanded_at_us[@intCast(tag)];
        disk.client.times.onAnswer(disk.now_us, demanded_at_us);
        disk.longest_wait_us = @max(disk.longest_wait_us, disk.now_us - demanded_at_us);
    }
    try disk_link.send(disk.link_fd, disk_link.Answer{ .slot = @intCast(tag), .result = result });
}

fn wait(disk: *ServedDisk) void {
    // A refusal that a send or receive of this turn has taken from the socket.
    if (disk.edge.takeRefusal(false)) disk.client.onUnreachable(sys.monotonicUs());
    var polled: [4 + control.clients_max]linux.pollfd = undefined;
    for (&polled) |*entry| entry.* = .{ .fd = -1, .events = linux.POLL.IN, .revents = 0 };
    polled[0].fd = disk.edge.fd;
    polled[1].fd = disk.link_fd;
    if (disk.local) |local| polled[3].fd = local.fd();
    if (disk.server) |*server| {
        if (server.hasRoom()) polled[2].fd = server.fd;
        for (polled[4..], server.clients) |*entry, client| entry.fd = client;
    }
    var timeout = disk.timeUntilDeadline();
    _ = linux.ppoll(&polled, polled.len, &timeout, null);
    if (polled[0].revents & linux.POLL.ERR != 0 and
        disk.edge.takeRefusal(true)) disk.client.onUnreachable(sys.monotonicUs());
    if (disk.server == null) return;
    if (polled[2].revents != 0) disk.server.?.accept();
    for (polled[4..], 0..) |entry, index| if (entry.revents != 0) disk.serveControl(index);
}

fn timeUntilDeadline(disk: *const ServedDisk) linux.timespec {
    const now_us = sys.monotonicUs();
    var at_us = @min(now_us + silence_look_us, disk.report.deadline());
    if (disk.client.deadline()) |client_at_us| at_us = @min(at_us, client_at_us);
    if (disk.order.deadline()) |order_at_us| at_us = @min(at_us, order_at_us);
    if (disk.lost) |lost| at_us = @min(at_us, lost.restart_at_us orelse at_us);
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
    if (std.mem.eql(u8, verb, "hand-over")) return server.answer(index, disk.beginSystem());
    if (std.mem.eql(u8, verb, "account")) return disk.sendAccount(index, rest);
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
    disk.keepOutcome(outcome, code, sentence);
    disk.server.?.waiting[index] = .outcome;
}

/// One part at a time: who sends an account waits for each.
fn sendAccount(disk: *ServedDisk, index: usize, text: []const u8) void {
    const server = &disk.server.?;
    const part = account.parse(text) orelse return server.answer(index, "not an account");
    if (std.mem.findScalar(control.Server.Waiting, &server.waiting, .account) != null)
        return server.answer(index, account.another);
    if (!disk.client.sendAccount(disk.now_us, part))
        return server.answer(index, "the edge takes no account");
    server.waiting[index] = .account;
}

/// Repeated, also by the next process, until an edge acknowledges it.
fn keepOutcome(
    disk: *ServedDisk,
    outcome: wire.stream.ReadyOutcome,
    code: []const u8,
    sentence: []const u8,
) void {
    const uptime_us = sys_time.uptimeUs();
    disk.lookAtCard();
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

/// The edge is told at once: it ends its own measurement then.
fn beginSystem(disk: *ServedDisk) []const u8 {
    disk.client.times.beginSystem();
    disk.memory.has_handed_over.store(true, .seq_cst);
    disk.report.report_at_us = 0;
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
    const times = disk.client.times.whole();
    var edge_text: [@TypeOf(disk.edge.edge).text_size_max]u8 = undefined;
    std.json.Stringify.value(.{
        .edge = std.mem.print(
            &edge_text,
            "{f}",
            .{disk.edge.edge},
        ) catch unreachable, // It has room for the longest.
        .otherEdges = OtherEdges{ .failover = &disk.client.failover },
        .state = disk.client.state,
        .diskSize = if (disk.client.session) |session| session.disk_size else 0,
        .stopped = disk.isStopped(),
        .readsWaiting = disk.reads_waiting,
        .reads = s.reads,
        .readBytes = s.read_bytes,
        .readTimesUs = .{
            .waitMedian = times.wait.quantileUs(500),
            .waitP99 = times.wait.quantileUs(990),
            .waitMax = disk.longest_wait_us,
            .waitSum = times.wait.sum_us,
            .turnaroundMedian = times.turnaround.quantileUs(500),
            .turnaroundSum = times.turnaround.sum_us,
        },
        .packetsIn = s.packets_in,
        .packetsOut = s.packets_out,
        .repeats = s.retransmits,
        .missingFragments = s.missing_fragments,
        .resumptions = s.resumptions,
        .handOvers = s.failovers,
        .readAhead = .{
            .bytes = disk.ahead_statistics.bytes,
            .hits = disk.ahead_statistics.hits + disk.ahead_statistics.waits,
            .usedBytes = disk.ahead_statistics.used_bytes,
        },
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

/// The edges for a fail-over, as JSON.
const OtherEdges = struct {
    failover: *const core.stream.Failover,

    pub fn jsonStringify(others: OtherEdges, out: *std.json.Stringify) !void {
        try out.beginArray();
        for (others.failover.others()) |edge| try out.print("\"{f}\"", .{edge});
        try out.endArray();
    }
};
