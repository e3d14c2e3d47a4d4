//! The uplink's two threads: one sends reports and heartbeats, one waits for desired states.
//! core/uplink/sender.zig decides what to do when; this file does it.

const std = @import("std");
const builtin = @import("builtin");
const base = @import("base");
const core = @import("core");
const sys = @import("../sys.zig");
const named_key = @import("../files/named_key.zig");
const health = @import("../health.zig");
const log = @import("../log.zig");
const BootFileSender = @import("boot_file_sender.zig");
const FilesOfBoots = @import("../files/files_of_boots.zig");
const DataDir = @import("../files/data_dir.zig");
const Identity = @import("../files/data_dir.zig").Identity;
const KeyRotation = @import("key_rotation.zig");
const load_facts = @import("../metrics/load_facts.zig");
const machine_facts = @import("../metrics/machine_facts.zig");
const storage_medium = @import("../metrics/storage_medium.zig");
const ReportLog = @import("../files/report_log.zig").ReportLog;
const CopyFetcher = @import("../layer_copies/copy_fetcher.zig");
const Repairer = @import("../repair/repairer.zig");
const UpdateWorker = @import("../update/worker.zig");
const UplinkClient = @import("client.zig");
const interface_list = @import("../net/interface_list.zig");
const UplinkLink = @import("link.zig");
const Updates = @import("agent").Updates;
const assert = std.debug.assert;

const BatchGzip = core.uplink.batch_gzip.BatchGzip;
const StateBox = UplinkLink.StateBox;

/// The answer to a long poll may take so much longer than the poll waits: a state of many devices
/// is large.
const poll_answer_ms = 15_000;

/// For the person who restored a control plane; a key that anybody could send must not be named.
const trust_hint =
    " If the control plane was restored from a backup older than a change of its signing key, read the key " ++
    "on the organization's page of the dashboard and name it on this machine: bootfarm-edge trust-key --data DIR --key KEY";

pub const UplinkWorker = @This();

pub const request_timeout_ms = 20_000;

gpa: std.mem.Allocator,
link: *UplinkLink,
report_log: *ReportLog,
data: *const DataDir,
/// Captures, and summaries of what boots read, that wait to be sent.
captures: ?*const FilesOfBoots = null,
reads: ?*const FilesOfBoots = null,
client_options: UplinkClient.Options,
/// The control plane's, for people.
url: []const u8,
/// The address at which devices and other edges of the site reach this one.
address: base.Ip4,
peer_port: u16,
stream_port: u16,
/// Opens what the control plane seals to this edge.
seal_secret: base.x25519.Key,
/// Used only by the thread that accepts states.
identity: Identity,
signing_key: [32]u8,
rotation: *KeyRotation,
/// The directory where vDisks are.
store_fd: i32,
/// Fetches releases.
updates: *UpdateWorker,
/// Null before it is prepared.
repairer: ?*Repairer = null,
copies: ?*CopyFetcher = null,
/// For the heartbeat; read once.
boot_programs: []const core.uplink.message.BootProgram = &.{},
counter: std.atomic.Value(u64) = .init(0),
sender: core.uplink.sender.Sender = .{},
/// Used only by the thread that polls.
follower: core.uplink.StateFollower,
/// An unreachable API is logged once, not at each try.
is_answered: bool = true,
/// Orders heartbeats of both threads: one with a higher counter says what is later.
heartbeat_mutex: std.Io.Mutex = .init,
/// What the last heartbeat said that was not lost (`newsOf`).
said_news: std.atomic.Value(u64) = .init(0),
/// How long polls that carry heartbeats may wait; 0: the last one failed, or the API takes none.
carrying_wait_ms: std.atomic.Value(u64) = .init(0),
/// Until when the poll in progress carries the heartbeat.
carried_until_ms: std.atomic.Value(u64) = .init(0),
/// The same refusal is logged once.
last_refusal: u64 = 0,

/// Both threads run until the process ends.
pub fn start(worker: *UplinkWorker) (std.Thread.SpawnError || error{OutOfMemory})!void {
    const send_buffer =
        try base.allocUntouched(worker.gpa, u8, core.uplink.report_log.batch_size_max);
    const gzip: BatchGzip = try .init(worker.gpa, core.uplink.report_log.batch_size_max);
    const file_buffer = try base.allocUntouched(worker.gpa, u8, BootFileSender.buffer_size);
    const state_size = core.uplink.desired_state.envelope_size_max + 4096;
    const state_buffer = try base.allocUntouched(worker.gpa, u8, state_size);
    const options: std.Thread.SpawnConfig = .{ .stack_size = 2 << 20 };
    const sending =
        try std.Thread.spawn(options, runSender, .{ worker, send_buffer, gzip, file_buffer });
    sending.detach();
    const polling = try std.Thread.spawn(options, runPoller, .{ worker, state_buffer });
    polling.detach();
}

fn runSender(
    worker: *UplinkWorker,
    buffer: []u8,
    batch_gzip: BatchGzip,
    file_buffer: []u8,
) void {
    var gzip = batch_gzip;
    var client: UplinkClient = .init(worker.gpa, worker.link.io, worker.client_options);
    defer client.deinit();
    var captures: BootFileSender =
        .{ .files = worker.captures, .resource = "capture", .buffer = file_buffer };
    var reads: BootFileSender =
        .{ .files = worker.reads, .resource = "reads", .buffer = file_buffer };
    while (true) {
        const seen = worker.link.reports_written.load(.acquire);
        const now_ms = nowMs();
        if (!worker.sender.stopped) worker.rotation.step(&client, now_ms, randomNumber());
        client.key = worker.rotation.key();
        worker.sender.onCarried(worker.carried_until_ms.load(.acquire));
        if (worker.link.has_news.swap(false, .acquire)) worker.sender.hurry(now_ms);
        switch (worker.sender.next(now_ms, worker.report_log.backlog())) {
            .heartbeat => worker.sendHeartbeat(&client),
            .look => worker.lookForNews(),
            .reports => worker.sendReports(&client, buffer, &gzip),
            // The files belong to boots whose reports have been applied.
            .wait_until_ms => |until_ms| if (worker.report_log.backlog() > 0 or
                !(captures.send(worker.gpa, &client, now_ms) or
                    reads.send(worker.gpa, &client, now_ms)))
                worker.waitForReport(seen, until_ms - now_ms),
            .stopped => return,
        }
    }
}

fn waitForReport(worker: *UplinkWorker, seen: u32, wait_ms: u64) void {
    const io = worker.link.io;
    const limit: std.Io.Timeout =
        .{ .duration = .{ .raw = .fromMilliseconds(@intCast(wait_ms)), .clock = .awake } };
    io.futexWaitTimeout(u32, &worker.link.reports_written.raw, seen, limit) catch return;
    // Phases often change together; what follows within a moment is sent in the same request.
    if (worker.link.reports_written.load(.acquire) != seen)
        io.sleep(.fromMilliseconds(core.uplink.sender.report_delay_ms), .awake) catch {};
}

fn sendHeartbeat(worker: *UplinkWorker, client: *UplinkClient) void {
    var arena: std.heap.ArenaAllocator = .init(worker.gpa);
    defer arena.deinit();
    var body: [core.uplink.message.body_size_max]u8 = undefined;
    const said = worker.writeHeartbeat(&body);
    var buffer: [core.uplink.message.body_size_max]u8 = undefined;
    const result = client.requestEncoded(
        .POST,
        "/edge/v1/heartbeat",
        .{ .bytes = said.text, .counter = said.counter },
        request_timeout_ms,
        &buffer,
    );
    const answer = UplinkClient.meaning(arena.allocator(), result);
    worker.logAnswer(client, "heartbeat", answer, result);
    var told: core.uplink.message.HeartbeatAnswer = .{};
    if (answer == .ok) {
        const answered = (result catch unreachable).body;
        if (core.uplink.message.parse(
            core.uplink.message.HeartbeatAnswer,
            arena.allocator(),
            answered,
        )) |parsed| told = parsed else |_| {}
        worker.carrying_wait_ms.store(told.pollWaitMs, .release);
    } else worker.loseHeartbeat(said.news);
    _ = worker.sender.heartbeatAnswered(nowMs(), randomNumber(), answer, told.nextMs);
}

const WrittenHeartbeat = struct { text: []const u8, counter: u64, news: u64 };

/// Takes the counter of its request, too.
fn writeHeartbeat(
    worker: *UplinkWorker,
    body: *[core.uplink.message.body_size_max]u8,
) WrittenHeartbeat {
    worker.heartbeat_mutex.lockUncancelable(worker.link.io);
    defer worker.heartbeat_mutex.unlock(worker.link.io);
    var parts: HeartbeatParts = undefined;
    const said = worker.heartbeat(&parts);
    const news = core.uplink.message.newsOf(&said);
    worker.said_news.store(news, .release);
    return .{
        .text = core.uplink.message.encode(said, body),
        .counter = UplinkClient.nextCounter(&worker.counter),
        .news = news,
    };
}

/// Nobody knows whether a heartbeat has arrived: what it said is news again.
fn loseHeartbeat(worker: *UplinkWorker, news: u64) void {
    _ = worker.said_news.cmpxchgStrong(news, 0, .acq_rel, .monotonic);
}

fn lookForNews(worker: *UplinkWorker) void {
    var parts: HeartbeatParts = undefined;
    const news = core.uplink.message.newsOf(&worker.heartbeat(&parts));
    worker.sender.looked(nowMs(), news != worker.said_news.load(.acquire));
}

/// What a heartbeat refers to.
const HeartbeatParts = struct {
    numbers: UplinkLink.Numbers,
    interfaces: interface_list.Interfaces,
    peers: [core.uplink.message.peers_max]core.uplink.message.HeardPeer,
    problems: @TypeOf(health.list()),
    update: ?Updates.Status,
    store_errors: [core.uplink.message.store_errors_max]core.uplink.message.StoreError,
    cache_copies: [core.uplink.message.cache_copies_max]core.uplink.message.CacheCopies,
    repairs: [core.uplink.message.repairs_max]core.uplink.message.Repair,
    medium_name: [core.uplink.message.Medium.name_size_max]u8,
};

fn heartbeat(worker: *UplinkWorker, parts: *HeartbeatParts) core.uplink.message.Heartbeat {
    parts.numbers = worker.link.numbers();
    const numbers = &parts.numbers;
    parts.interfaces = .empty;
    interface_list.read(&parts.interfaces);
    const since_us = sys.monotonicUs() -| numbers.numbers_us;
    for (
        numbers.peers.constSlice(),
        parts.peers[0..numbers.peers.count],
    ) |*heard, *peer| peer.* = .{
        .edgeId = heard.edge,
        .heardMsAgo = (heard.ago_us + since_us) / std.time.us_per_ms,
        .booting = heard.booting,
    };
    parts.problems = health.list();
    parts.update = worker.updates.status();
    if (numbers.load) |*load| load_facts.addMachine(load, worker.address);
    const places = numbers.store_errors.places.constSlice();
    for (places, parts.store_errors[0..places.len]) |*place, *said| said.* = .{
        .versionId = place.version_id,
        .offset = place.offset,
        .length = place.length,
        .count = place.count,
        .sinceUnixMs = place.since_unix_ms,
    };
    return .{
        .agentVersion = base.version,
        .arch = comptime core.uplink.message.archName(builtin.cpu.arch).?,
        .uptimeMs = (sys.monotonicUs() - worker.link.started_us) / std.time.us_per_ms,
        .clockUnixMs = sys.unixMs(),
        .devicesBooting = numbers.devices_booting,
        .reportBacklog = worker.report_log.backlog(),
        .sealKey = core.uplink.key_text.write(base.x25519.publicOf(&worker.seal_secret)),
        .state = numbers.pair,
        .stateRefused = if (numbers.refusal) |refusal|
            core.uplink.desired_state.word(refusal)
        else
            null,
        .ignored = numbers.ignored,
        .bootPrograms = worker.boot_programs,
        .address = worker.address,
        .peerPort = worker.peer_port,
        .streamPort = worker.stream_port,
        .machine = worker.machineNow(parts),
        .load = numbers.load,
        .interfaces = parts.interfaces.constSlice(),
        .peers = parts.peers[0..numbers.peers.count],
        .problems = parts.problems.slice(),
        .update = if (parts.update) |*told| updateStatus(told) else null,
        .storeErrors = parts.store_errors[0..places.len],
        .repairs = worker.repairsNow(&parts.repairs),
        .cacheCopies = if (worker.copies) |copies| copies.ofEdges(&parts.cache_copies) else &.{},
    };
}

fn machineNow(worker: *const UplinkWorker, parts: *HeartbeatParts) ?core.uplink.message.Machine {
    var machine = machine_facts.read(worker.store_fd) orelse return null;
    machine.storeMedium = storage_medium.read(worker.store_fd, &parts.medium_name);
    return machine;
}

fn repairsNow(
    worker: *UplinkWorker,
    into: *[core.uplink.message.repairs_max]core.uplink.message.Repair,
) []const core.uplink.message.Repair {
    const repairer = worker.repairer orelse return &.{};
    const counts = repairer.countsNow();
    for (counts.constSlice(), into[0..counts.count]) |*counted, *said| said.* = .{
        .versionId = counted.version_id,
        .repaired = counted.repaired,
        .failed = counted.failed,
        .lastUnixMs = counted.last_unix_ms,
    };
    return into[0..counts.count];
}

fn updateStatus(update: *const Updates.Status) core.uplink.message.UpdateStatus {
    return .{
        .version = update.order.version.constSlice(),
        .attempt = update.order.attempt,
        .state = @tagName(update.state),
        .cause = if (update.cause) |cause| @tagName(cause) else null,
    };
}

fn sendReports(worker: *UplinkWorker, client: *UplinkClient, buffer: []u8, gzip: *BatchGzip) void {
    var arena: std.heap.ArenaAllocator = .init(worker.gpa);
    defer arena.deinit();
    const batch = worker.report_log.nextBatch(buffer) catch {
        log.info("The report log on disk does not respond; the edge retries.", .{});
        _ = worker.sender.reportsAnswered(nowMs(), randomNumber(), .nothing);
        return;
    } orelse return;
    var answer_buffer: [core.uplink.message.body_size_max]u8 = undefined;
    const compressed = if (worker.sender.mayCompress()) gzip.compress(batch.body) else null;
    const result = client.requestEncoded(
        .POST,
        "/edge/v1/reports",
        if (compressed) |bytes|
            .{ .bytes = bytes, .encoding = .gzip }
        else
            .{ .bytes = batch.body },
        request_timeout_ms,
        &answer_buffer,
    );
    var answer = UplinkClient.meaning(arena.allocator(), result);
    if (answer == .ok) {
        const body = (result catch unreachable).body;
        if (core.uplink.message.parse(
            core.uplink.message.ReportAnswer,
            arena.allocator(),
            body,
        )) |acked| {
            worker.report_log.ack(acked.bootEpoch, acked.ackedSeq);
            // An answer that acknowledges nothing would be requested again at once.
            if (acked.bootEpoch != batch.epoch or acked.ackedSeq < batch.from_seq)
                answer = .nothing;
        } else |_| answer = .nothing;
    }
    if (result) |answered| worker.sender.onBatchForm(
        answered.takes_gzip,
        compressed != null and isRefusedForm(answered.status),
    ) else |_| {}
    worker.logAnswer(client, "reports", answer, result);
    switch (worker.sender.reportsAnswered(nowMs(), randomNumber(), answer)) {
        .rewind => |seq| worker.report_log.rewind(batch.epoch, seq),
        .none, .stop => {},
    }
}

fn runPoller(worker: *UplinkWorker, buffer: []u8) void {
    var client: UplinkClient = .init(worker.gpa, worker.link.io, worker.client_options);
    defer client.deinit();
    while (true) {
        const now_ms = nowMs();
        client.key = worker.rotation.key();
        switch (worker.follower.poller.next(now_ms)) {
            .poll => worker.poll(&client, buffer),
            .wait_until_ms => |until_ms| worker.link.io.sleep(
                .fromMilliseconds(@intCast(until_ms - now_ms)),
                .awake,
            ) catch return,
            .stopped => return,
        }
    }
}

fn poll(worker: *UplinkWorker, client: *UplinkClient, buffer: []u8) void {
    var arena: std.heap.ArenaAllocator = .init(worker.gpa);
    defer arena.deinit();
    const pair = worker.link.above() orelse core.uplink.desired_state.Pair{};
    const named_ms = worker.carrying_wait_ms.load(.acquire);
    const plan = worker.follower.poller.plan(nowMs(), named_ms, randomNumber());
    const former = worker.follower.baseOf(&plan);
    var path: [192]u8 = undefined;
    const text = std.mem.print(&path, "/edge/v1/state?after={d}.{d}&waitMs={d}{s}{s}", .{
        pair.incarnation,
        pair.counter,
        plan.wait_ms,
        if (former == null) "" else "&base=",
        if (former) |named| &named.digest else "",
    }) catch unreachable;
    const timeout_ms: u32 = @intCast(plan.wait_ms + poll_answer_ms);
    var body: [core.uplink.message.body_size_max]u8 = undefined;
    const said = if (plan.carries_heartbeat) worker.writeHeartbeat(&body) else null;
    if (said != null)
        worker.carried_until_ms.store(plan.carriesUntil(nowMs()), .release);
    const result = if (said) |heartbeat_said|
        client.requestEncoded(
            .POST,
            text,
            .{ .bytes = heartbeat_said.text, .counter = heartbeat_said.counter },
            timeout_ms,
            buffer,
        )
    else
        client.request(.GET, text, "", timeout_ms, buffer);
    const answer = UplinkClient.meaning(arena.allocator(), result);
    if (said) |heartbeat_said| worker.onCarried(heartbeat_said.news, answer);
    var usable = true;
    if (result) |answered| {
        if (answered.status == 200) usable = worker.takeState(answered.body, former);
        if (answered.status == 204) worker.link.onRefusal(null);
    } else |err| if (err == error.AnswerTooLarge) worker.refuseState(error.TooLarge);
    _ = worker.follower.poller.answered(nowMs(), randomNumber(), answer, usable);
}

/// If it was not taken, the sender sends heartbeats until the API takes one, and reports why not.
fn onCarried(worker: *UplinkWorker, news: u64, answer: core.uplink.sender.Answer) void {
    worker.follower.poller.onCarried(nowMs(), answer);
    if (answer == .ok) return;
    worker.loseHeartbeat(news);
    worker.carrying_wait_ms.store(0, .release);
    worker.carried_until_ms.store(0, .release);
}

/// Verifies the state, writes it to disk, then puts it in force. Returns false if the next poll
/// has to wait.
fn takeState(
    worker: *UplinkWorker,
    answer: []const u8,
    former: ?*const core.uplink.state_delta.Base,
) bool {
    const box = StateBox.create(worker.gpa, answer, .{
        .edge_id = worker.client_options.edge_id.?,
        .signing_key = worker.signing_key,
        .organization_id = worker.identity.organizationId,
        .named_key = named_key.read(worker.data),
        .seal_secret = worker.seal_secret,
        .above = worker.link.above(),
        .base = former,
    }) catch |refusal| {
        if (refusal == error.DeltaUnfit) log.info(
            "The desired state was refused: {s}; the edge requests the whole state.",
            .{core.uplink.desired_state.sentence(refusal)},
        ) else worker.refuseState(refusal);
        return worker.follower.onRefused(nowMs(), refusal);
    };
    worker.writeState(box, answer) catch {
        log.info(
            "The desired state cannot be written to the data directory; the edge retries.",
            .{},
        );
        health.set(.other_files_not_kept, true);
        box.destroy(worker.gpa);
        return false;
    };
    health.set(.other_files_not_kept, false);
    worker.keepBase(box);
    // After the state, which has the statements and is also verified by the previous key.
    worker.pin(box.reached);
    if (!box.reached.is_named) named_key.forget(worker.data);
    worker.rotation.order(
        if (box.state.rotateKey) |text| core.uplink.key_text.parse(text) catch null else null,
    );
    worker.link.onRefusal(null);
    worker.link.offerState(box);
    return true;
}

/// As it came, or as it would have come whole: the file has the same form for every release.
fn writeState(
    worker: *UplinkWorker,
    box: *StateBox,
    answer: []const u8,
) (sys.Error || error{OutOfMemory})!void {
    const envelope = if (box.received.is_delta) try box.wholeEnvelope() else answer;
    try worker.data.write("state.json", envelope);
}

/// The next state may come as a change of this one. The packet loop owns the box, and frees it when
/// it pleases.
pub fn keepBase(worker: *UplinkWorker, box: *const StateBox) void {
    worker.follower.onKept(box.received.envelope.payload);
}

/// The edge keeps the state that it has, and its heartbeats report why.
fn refuseState(worker: *UplinkWorker, refusal: core.uplink.desired_state.Refusal) void {
    worker.link.onRefusal(refusal);
    const hint = if (refusal == error.SignatureInvalid) trust_hint else "";
    log.info("The desired state was refused: {s}.{s}", .{
        core.uplink.desired_state.sentence(refusal), hint,
    });
}

/// Replaces the pinned key by one that follows it, or by one that was named on this machine,
/// also over restarts.
pub fn pin(worker: *UplinkWorker, reached: core.uplink.desired_state.VerifiedKey) void {
    if (reached.id == null and !reached.is_named) return;
    // A named key comes without an id.
    const id = reached.id orelse base.Uuid.zero;
    const text = core.uplink.key_text.write(reached.key);
    var identity = worker.identity;
    identity.signingKeyId = id;
    identity.signingKey = &text;
    worker.data.writeIdentity(identity) catch {
        log.info(
            "The organization's new signing key cannot be written to the data directory; the edge retries.",
            .{},
        );
        return;
    };
    worker.signing_key = reached.key;
    worker.identity.signingKeyId = id;
    if (!reached.is_named) {
        log.info(
            "The organization signs with a new key, and the previous key vouches for it.",
            .{},
        );
        return;
    }
    // After the identity: wherever this is interrupted, the named key verifies the state.
    named_key.forget(worker.data);
    log.info(
        "The organization signs with the key that was named on this machine; the previous one is no longer trusted.",
        .{},
    );
}

fn reportRefusal(
    worker: *UplinkWorker,
    what: []const u8,
    code: core.uplink.sender.Code,
    status: u16,
    result: UplinkClient.RequestError!UplinkClient.Answer,
) void {
    const body = if (result) |answered| answered.body else |_| "";
    const refusal = std.hash.Wyhash.hash(status, body) | 1;
    if (refusal == worker.last_refusal) return;
    worker.last_refusal = refusal;
    var memory: [8192]u8 = undefined;
    var fixed: std.heap.FixedBufferAllocator = .init(&memory);
    const problem = core.uplink.message.parse(
        core.uplink.message.Problem,
        fixed.allocator(),
        body,
    ) catch
        core.uplink.message.Problem{};
    const detail: base.UntrustedText = .init(problem.detail);
    if (status < 400) {
        const location = if (result) |answered| answered.location else |_| base.UntrustedText.empty;
        return log.info(
            "The control plane at {s} redirects to {f} ({d}). Redirects are not followed: run bootfarm-edge enrol --rejoin with its own URL.",
            .{ worker.url, location, status },
        );
    }
    log.info("The control plane refused the {s}: {t} ({d}) {f}.", .{ what, code, status, detail });
}

fn logAnswer(
    worker: *UplinkWorker,
    client: *const UplinkClient,
    what: []const u8,
    answer: core.uplink.sender.Answer,
    result: UplinkClient.RequestError!UplinkClient.Answer,
) void {
    const url = worker.url;
    worker.link.is_answered.store(answer != .nothing, .monotonic);
    const accepted = &worker.link.is_accepted;
    accepted.store(answer.accepts(accepted.load(.monotonic)), .monotonic);
    switch (answer) {
        .ok => {
            if (!worker.is_answered) log.info("The control plane at {s} answers again.", .{url});
            worker.is_answered = true;
        },
        .later => |after_ms| {
            if (worker.is_answered) log.info(
                "The control plane at {s} is busy and asks to wait {d} s: reports are kept until then.",
                .{ url, after_ms / std.time.ms_per_s },
            );
            worker.is_answered = false;
        },
        .nothing => {
            if (worker.is_answered) worker.logSilence(client, result);
            worker.is_answered = false;
        },
        .refused => |refused| switch (refused.code) {
            .signature_invalid => {
                worker.rotation.doubt();
                worker.reportRefusal(what, refused.code, refused.status, result);
            },
            .edge_revoked => log.info(
                "The control plane at {s} has revoked this edge: the edge sends nothing more.",
                .{url},
            ),
            .stale_epoch => log.info(
                "The control plane refused the {s}: this data directory is older than what it has recorded of this edge.",
                .{what},
            ),
            .report_gap => {},
            else => worker.reportRefusal(what, refused.code, refused.status, result),
        },
    }
}

fn logSilence(
    worker: *const UplinkWorker,
    client: *const UplinkClient,
    result: UplinkClient.RequestError!UplinkClient.Answer,
) void {
    var buffer: [32]u8 = undefined;
    const reason = if (result) |answered|
        std.mem.print(&buffer, "HTTP status {d}", .{answered.status}) catch unreachable
    else |_|
        client.failure().sentence();
    log.info(
        "The control plane at {s} does not answer ({s}): devices keep booting, and reports are kept until it answers.",
        .{ worker.url, reason },
    );
}

/// Malformed, too large, or of an unsupported media type.
fn isRefusedForm(status: u16) bool {
    return status == 400 or status == 413 or status == 415;
}

fn nowMs() u64 {
    return sys.monotonicUs() / std.time.us_per_ms;
}

fn randomNumber() u64 {
    var bytes: [8]u8 = undefined;
    sys.random(&bytes);
    return std.mem.readInt(u64, &bytes, .little);
}
