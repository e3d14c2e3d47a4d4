//! The state machine of one boot of one device: turns what the edge observes into phases, counts
//! and an outcome. Producer: the agent, through `BootTable.apply`; consumers: boot reports, the
//! journal and the console. Phases: packages/proto/boot-phases.json.
//!
//! Pure: each event carries its time. An invalid or late event changes nothing. An outcome is
//! final, but a boot that is over may still be served.

const std = @import("std");
const base = @import("base");
const stream = @import("wire").stream;
const facts_module = @import("facts.zig");
const assignment_module = @import("assignment.zig");
const boot_event = @import("event.zig");
const DeviceIdentity = @import("../site/device_identity.zig");
const boot_phase = @import("phase.zig");
const boot_packets = @import("packets.zig");
const BootReadAhead = @import("read_ahead_tally.zig");
const BootReadTimes = @import("read_times.zig");
const Guest = @import("guest.zig");
const LiveReports = @import("live_reports.zig");
const LoaderSteps = @import("loader_steps.zig");
const LostDevice = @import("lost.zig");
const RouterWait = @import("router_wait.zig");
const Series = @import("traffic/series.zig");
const Transfers = @import("traffic/transfers.zig");
const BootFailover = @import("failover.zig").BootFailover;
const assert = std.debug.assert;

const Phase = boot_phase.Phase;
const PhaseRecord = boot_phase.PhaseRecord;
const Traffic = boot_phase.Traffic;

pub const Facts = facts_module.Facts;
pub const Program = facts_module.Program;
pub const DhcpClient = boot_event.DhcpClient;
pub const DhcpMessage = boot_event.DhcpMessage;
pub const DhcpRequest = boot_event.DhcpRequest;
pub const LoaderFile = assignment_module.LoaderFile;
pub const LoaderFiles = assignment_module.LoaderFiles;
pub const Event = boot_event.Event;
pub const Assignment = assignment_module.Assignment;

/// A copy of a DHCP request that was sent before its boot ended may arrive this much later.
const duplicate_us_max = 10 * std.time.us_per_s;

/// Tells whether a DHCP request belongs to the boot that its device is known to be in.
pub const DhcpMeaning = enum { same_boot, new_boot };

pub const Identity = struct {
    id: base.Uuid,
    mac: base.Mac,
    /// Appears as 16 hex digits in URLs and boot file names.
    handle: u64,
    token: [16]u8,
};

/// The outcome of `DeviceIdentity.judge`, for the report.
pub const DeviceKey = struct {
    label: DeviceIdentity.Label,
    /// The key that the device has proved to own.
    key: ?DeviceIdentity.Fingerprint = null,
    /// That of the identity by which it was judged.
    revision: u64 = 0,
};

pub const LiveChanges = packed struct(u8) { outcome: bool = false, steps: bool = false, _: u6 = 0 };

pub const Boot = @This();

identity: Identity,
assignment: Assignment,
facts: Facts = .{},
/// The only wall-clock anchor; everything else is on the monotonic clock.
started_unix_ms: u64,
started_us: u64,
/// Revision of the last report of this boot; 0 before the first.
revision: u64 = 0,
/// A phase began or ended since the last report.
changed: bool = true,
/// What changed since the last report for somebody who watches live.
live_changes: LiveChanges = .{},
/// Something was counted since the boot was last written to the journal.
touched: bool = true,
phases: [Phase.count]?PhaseRecord = @splat(null),
outcome: ?boot_phase.Outcome = null,
suspicion: ?boot_phase.Failure = null,
/// The suspicion came from an address that is not known as the device's.
suspicion_is_hearsay: bool = false,
/// The device has proved itself in a later boot: nothing opens in this one, whatever its outcome
/// is.
is_superseded: bool = false,
store_errors: u32 = 0,
/// Consecutive READs, since the last new one, of which every fragment was missing.
whole_retransmits_in_row: u32 = 0,
loader_done: LoaderFiles = .{},
/// The kernel or initramfs was requested: the device can no longer choose what it boots.
files_begun: bool = false,
/// A boot menu is shown: extends the silence limit by this.
menu_wait_us: u64 = 0,
/// What is known of waits for an IPv6 router.
router_wait: RouterWait = .{},
loader_steps: LoaderSteps = .{},
transfers: Transfers = .{},
series: Series = .{},
live_reports: LiveReports = .{},
/// Title of the menu entry that was chosen.
menu_entry: base.UntrustedText = .empty,
/// The loader was active after the boot program; until then, parts of the program may still
/// follow.
loader_seen: bool = false,
rom_xid: ?u32 = null,
ipxe_xid: ?u32 = null,
last_dhcp_answer_us: ?u64 = null,
last_us: u64 = 0,
/// The last packet of a session that only this boot's device can have sent.
heard_us: u64 = 0,
/// This edge was away until then: its device may have been there, and nobody heard it.
away_until_us: u64 = 0,
/// For how long this edge has served since the device was heard last or may have been, when another
/// boot of the device last waited for that: a restart of the edge does not begin the wait anew.
listened_us: u64 = 0,
/// It was journaled and not reported: anybody could have begun it (agent/boots.zig).
is_unreported: bool = false,
/// A request said that the device has started again. Anybody can send one: it only says what a
/// silence means.
is_left: bool = false,
reconnects: u64 = 0,
stream_was_open: bool = false,
/// The device addressed this edge by name, before any download.
is_taken: bool = false,
/// Nobody had registered the device when the boot began.
is_unregistered: bool = false,
guest: ?Guest = null,
/// The device reports that its session is lost for good; null: it does not.
lost: ?LostDevice = null,
read_ahead: BootReadAhead = .{},
read_times: BootReadTimes = .{},
/// The slot in the edge's `ReadLog`, if it is still the boot's.
read_log_slot: u16 = 0,
/// DHCP offers observed for the device up to its first download.
offers: boot_packets.Offers = .{},
/// The last packet in each direction before the boot ended.
last_packets: boot_packets.LastPackets = .{},
/// Nonce of the first valid HELLO with this boot's token; the token is worthless to anyone
/// else.
token_nonce: ?[16]u8 = null,
/// Null if the boot began at this edge.
failover: ?BootFailover = null,
/// What the device's last HELLO with the boot's token proved; null before it.
device_key: ?DeviceKey = null,
/// What this edge knows of the device's key. A later boot of the device takes it over, so that the
/// journal keeps it across restarts.
device_identity: DeviceIdentity = .{},
/// When a device whose writes this edge keeps last came back, since the boot's start.
resumed_us: ?u64 = null,

/// The device retries after an occasional store error; a store that keeps failing will not boot
/// it.
pub const store_errors_max = 16;
/// Four reads in flight, each retransmitted three times.
pub const whole_retransmits_max = 12;

pub const simulator_user_class = "bootfarm-sim";

pub fn init(identity: Identity, assignment: Assignment, now_us: u64, now_unix_ms: u64) Boot {
    return .{
        .identity = identity,
        .assignment = assignment,
        .started_us = now_us,
        .started_unix_ms = now_unix_ms,
    };
}

/// Returns whether the device of this boot is known to have this address.
pub fn isAt(boot: *const Boot, ip: base.Ip4) bool {
    if (!boot.facts.is_ip_confirmed) return false;
    return if (boot.facts.ip) |known| known.eql(ip) else false;
}

pub fn isOver(boot: *const Boot) bool {
    return boot.outcome != null;
}

/// Its device had a session, and may read as long as no later boot has taken its place, whatever
/// its outcome is.
pub fn isRunning(boot: *const Boot) bool {
    return boot.stream_was_open and !boot.hasSuccessor();
}

/// The device has proved itself in a later boot.
pub fn hasSuccessor(boot: *const Boot) bool {
    if (boot.is_superseded) return true;
    // Journals of earlier releases say it only so.
    return if (boot.outcome) |outcome| outcome == .superseded else false;
}

/// Its device has proved that this is its boot: by the token, or in a fail-over by a packet of its
/// session here.
pub fn isProved(boot: *const Boot) bool {
    return if (boot.failover) |failover| failover.is_confirmed else boot.stream_was_open;
}

/// It is in progress and has no session yet: anybody can have begun it.
pub fn isCandidate(boot: *const Boot) bool {
    return !boot.isOver() and !boot.stream_was_open;
}

/// When the boot's device was last heard or may have been, on the edge's clock.
pub fn heardAt(boot: *const Boot) u64 {
    return boot.started_us + @max(boot.heard_us, boot.away_until_us);
}

/// When the boot's device last proved that it is there, as other edges are told.
pub fn provedAt(boot: *const Boot) u64 {
    assert(boot.isProved());
    return boot.started_us + boot.heard_us;
}

/// When the device last loaded something in this boot; 0: it has not.
pub fn downloadedAt(boot: *const Boot) u64 {
    var latest_us: u64 = 0;
    for ([_]Phase{ .nbp, .loader, .stage1 }) |phase| if (boot.record(phase)) |found| {
        latest_us = @max(latest_us, boot.started_us + found.last_us);
    };
    return latest_us;
}

pub fn isSimulated(boot: *const Boot) bool {
    return std.mem.eql(u8, boot.facts.user_class.slice(), simulator_user_class);
}

/// Returns the latest phase that has begun.
pub fn current(boot: *const Boot) ?Phase {
    var index: u8 = Phase.count;
    while (index > 0) {
        index -= 1;
        if (boot.phases[index] != null) return @fromBackingInt(index);
    }
    return null;
}

pub fn record(boot: *const Boot, phase: Phase) ?*const PhaseRecord {
    return if (boot.phases[@backingInt(phase)]) |*found| found else null;
}

/// Tells whether the firmware or iPXE used this DHCP transaction id.
pub fn knowsTransaction(boot: *const Boot, xid: u32) bool {
    return boot.rom_xid == xid or boot.ipxe_xid == xid;
}

/// No message announces that a device starts again; its DHCP requests reveal it. The second
/// DHCP exchange of a boot (iPXE after the firmware's ROM) and retransmitted requests belong to
/// the same boot. Rules, in this order:
/// - Its device has had a session: new boot, whatever its transaction id is. Some firmware derives
///   the id from its MAC address, and iPXE from the time since it was loaded, so a machine may use
///   the same one after a reset. Its boot has used its token, and a late copy of a request begins a
///   candidate that nobody hears of.
/// - A transaction id that this boot knows: same boot. For a boot that is over, or a DISCOVER of
///   the program that it began with after it has loaded something, this holds only briefly (a late
///   duplicate): a machine that was reset may use the same one.
/// - The boot is over: new boot.
/// - A REQUEST: same boot; only a DISCOVER starts one.
/// - ROM: new boot once a download has begun or iPXE was seen, since a ROM does not come back
///   by itself.
/// - iPXE: new boot once the operating system was loaded, or where iPXE is the ROM and already
///   had its script.
pub fn dhcpMeaning(boot: *const Boot, at_us: u64, request: DhcpRequest) DhcpMeaning {
    if (boot.stream_was_open) return .new_boot;
    const past_us = if (boot.isOver())
        at_us -| (boot.started_us + boot.last_us)
    else if (boot.isOfFirstProgram(request))
        at_us -| (boot.firstLoadAt() orelse at_us)
    else
        0;
    if (boot.knowsTransaction(request.xid) and past_us <= duplicate_us_max) return .same_boot;
    if (boot.isOver()) return .new_boot;
    if (request.message == .request) return .same_boot;
    const phase = boot.current() orelse return .same_boot;
    const reached = @backingInt(phase);
    const again = switch (request.client) {
        .rom => boot.ipxe_xid != null or reached > @backingInt(Phase.dhcp),
        .ipxe => reached > @backingInt(Phase.loader) or
            (boot.rom_xid == null and reached >= @backingInt(Phase.loader)),
    };
    return if (again) .new_boot else .same_boot;
}

/// Returns whether a request can be the first of a boot: iPXE that the firmware's ROM has loaded
/// sends one, too.
pub fn isOfFirstProgram(boot: *const Boot, request: DhcpRequest) bool {
    return request.message == .discover and (request.client == .rom or boot.rom_xid == null);
}

/// When the first download began; null: none has.
fn firstLoadAt(boot: *const Boot) ?u64 {
    for ([_]Phase{ .nbp, .loader, .stage1 }) |phase|
        if (boot.record(phase)) |found| return boot.started_us + found.start_us;
    return null;
}

fn onHeard(boot: *Boot, at_us: u64) void {
    boot.heard_us = @max(boot.heard_us, at_us -| boot.started_us);
    if (boot.listened_us == 0) return;
    boot.listened_us = 0;
    boot.touched = true;
    assert(boot.heardAt() >= at_us);
}

/// Another boot of the device waits until this one's device is certainly gone.
pub fn onAwaited(boot: *Boot, now_us: u64) void {
    assert(boot.stream_was_open);
    boot.listened_us = now_us -| boot.heardAt();
    boot.touched = true;
}

/// The only function that changes a boot by an event. Late events of a boot that is over are
/// ignored.
pub fn apply(boot: *Boot, at_us: u64, event: Event) void {
    // A HELLO of version 2 can be replayed: it opens a session, and only the first one is news.
    const is_first = event == .stream_open and !boot.stream_was_open;
    if (is_first or event.isOfSession()) boot.onHeard(at_us);
    if (event == .guest) boot.onGuestReport(at_us, event.guest);
    if (boot.isOver()) return;
    // A device that has its session loads nothing more: this comes from somebody else.
    if (boot.stream_was_open and event.isHint()) return;
    const event_us = at_us -| boot.started_us;
    // The clock may have restarted under a boot taken from the journal; time never runs
    // backwards within a boot.
    const now_us = @max(event_us, boot.last_us);
    boot.last_us = now_us;
    boot.touched = true;
    if (event != .suspected) boot.is_left = false;
    boot.noteRouterWait(now_us, &event);
    switch (event) {
        // A download's events may be reported late but carry their own time: only that phase
        // may use it.
        .nbp_traffic => |traffic| boot.load(.nbp, event_us, traffic),
        .nbp_end => boot.nbpEnd(event_us),
        .loader_traffic => |traffic| boot.load(.loader, event_us, traffic),
        .loader_end => |file| boot.loaderEnd(event_us, file),
        .stage1_traffic => |traffic| boot.load(.stage1, event_us, traffic),
        .power_command => boot.begin(.firmware, now_us, .observed),
        .dhcp_request => |request| boot.dhcpRequest(now_us, request),
        .dhcp_answer => |answer| boot.dhcpAnswer(now_us, answer.size),
        .nbp_begin => boot.nbpBegin(now_us),
        .loader_begin => |file| boot.loaderBegin(now_us, file),
        .stage1_read => |read| boot.stage1Read(now_us, read.size),
        .stream_open => |open| boot.streamOpen(now_us, &open),
        .stream_read => |read| {
            boot.facts.mtu = read.mtu orelse boot.facts.mtu;
            boot.streamRead(now_us, read.size, read.attempt, read.missing_fragments);
        },
        .stream_traffic => |traffic| boot.count(
            if (boot.has(.stage2)) .stage2 else .breather,
            now_us,
            traffic,
        ),
        .ready => |by| boot.becomeReady(now_us, by == .http),
        .guest => boot.touchCurrent(now_us),
        .failed => |failed| boot.finish(now_us, .{ .failed = .{
            .phase = boot.current() orelse .dhcp,
            .cause = failed.cause,
            .text = failed.text,
        } }),
        .store_error => boot.storeError(now_us),
        .suspected => |suspected| boot.suspect(&suspected),
        .menu_shown => |shown| if (boot.mayChoose()) {
            boot.menu_wait_us = @as(u64, shown.timeout_ms) * std.time.us_per_ms;
        },
        .menu_choice => |choice| if (boot.mayChoose()) boot.choose(choice.title, choice.assignment),
        .left_to_local_disk => boot.finish(now_us, .local_disk),
    }
}

fn noteRouterWait(boot: *Boot, now_us: u64, event: *const Event) void {
    assert(!boot.isOver());
    switch (event.*) {
        .dhcp_request, .dhcp_answer, .nbp_traffic, .nbp_end => if (!boot.files_begun)
            boot.router_wait.onPause(now_us),
        .nbp_begin, .loader_begin, .stage1_read => {
            if (boot.router_wait.onDownload(now_us, boot.ipxe_xid != null)) boot.changed = true;
        },
        else => {},
    }
}

/// The device can still choose what it boots.
pub fn mayChoose(boot: *const Boot) bool {
    return !boot.isOver() and !boot.files_begun and !boot.has(.stage1) and !boot.stream_was_open;
}

fn choose(boot: *Boot, title: base.UntrustedText, assignment: ?Assignment) void {
    assert(boot.mayChoose());
    boot.menu_entry = title;
    boot.menu_wait_us = 0;
    if (assignment) |chosen| boot.assignment = chosen;
    // The suspicion was about another version.
    if (boot.suspicion) |failure| if (failure.cause == .version_missing) {
        boot.suspicion = null;
    };
    boot.changed = true;
}

/// After a device has started again, its reports no longer concern an earlier boot.
fn onGuestReport(boot: *Boot, at_us: u64, report: stream.Report) void {
    if (boot.hasSuccessor()) return;
    const trigger = Guest.onReport(&boot.guest, at_us -| boot.started_us, report);
    assert(boot.guest != null);
    // The final read times come with the first report after the boot: report them once.
    const has_last_times =
        boot.read_times.onReport(report.read_times, boot.failover != null) and boot.isOver();
    if (trigger == .nothing and !has_last_times) return;
    if (trigger == .steps) boot.live_changes.steps = true;
    boot.changed = true;
    boot.touched = true;
}

/// The device of this boot reports that its session is lost for good, whatever the outcome is;
/// returns whether that is news. A copy of such a report must not look like a device that is there:
/// it counts for nothing else.
pub fn onLost(boot: *Boot, at_us: u64, report: *const LostDevice.Report) bool {
    if (!boot.isProved() or boot.hasSuccessor()) return false;
    if (!LostDevice.onReport(&boot.lost, at_us -| boot.started_us, report)) return false;
    assert(boot.lost != null);
    boot.changed = true;
    boot.touched = true;
    return true;
}

/// The device was heard, and is not any more: it is switched off, or disconnected.
pub fn checkSilence(boot: *Boot, at_us: u64) void {
    const age_us = at_us -| boot.started_us;
    if (boot.lost) |*lost| {
        if (!lost.checkSilence(age_us)) return;
        assert(lost.is_silent);
    } else {
        const outcome = boot.outcome orelse return;
        const guest = if (boot.guest) |*known| known else return;
        if (outcome != .ready or !guest.checkSilence(age_us)) return;
        assert(guest.is_silent);
    }
    boot.changed = true;
}

/// Since when the device is silent, µs since the boot's start; null while it is heard.
pub fn silentSince(boot: *const Boot) ?u64 {
    if (boot.lost) |*lost| return if (lost.is_silent) lost.heard_us else null;
    const guest = if (boot.guest) |*known| known else return null;
    return if (guest.is_silent) guest.heard_us else null;
}

/// Records a packet of this boot. It is no event: it only changes what the report says.
pub fn onPacket(
    boot: *Boot,
    at_us: u64,
    direction: boot_packets.Direction,
    packet: boot_packets.Packet,
) void {
    if (boot.isOver()) return;
    assert(boot.outcome == null);
    boot.last_packets.record(direction, at_us -| boot.started_us, packet);
    boot.touched = true;
}

/// Its device has solicited an IPv6 router. It is no event: it only explains a pause.
pub fn onSolicitation(boot: *Boot, at_us: u64, is_answered: bool) void {
    assert(boot.isInLoader());
    boot.router_wait.onSolicitation(at_us -| boot.started_us, is_answered);
    boot.touched = true;
}

/// Nothing of an operating system was loaded yet: firmware or a loader runs.
pub fn isInLoader(boot: *const Boot) bool {
    const phase = boot.current() orelse return false;
    if (!boot.isCandidate() or boot.files_begun) return false;
    return @backingInt(phase) <= @backingInt(Phase.loader);
}

/// Records an offer seen for this boot's device. Another server's packets are no sign of the
/// device.
pub fn onOffer(boot: *Boot, at_us: u64, offer: boot_packets.Offer) void {
    if (boot.isOver() or boot.has(.nbp) or boot.has(.loader)) return;
    var heard = offer;
    heard.at_us = at_us -| boot.started_us;
    if (boot.offers.add(heard)) boot.touched = true;
}

fn storeError(boot: *Boot, now_us: u64) void {
    assert(!boot.isOver());
    boot.store_errors += 1;
    const failure: boot_phase.Failure =
        .{ .phase = boot.current() orelse .dhcp, .cause = .store_read_error };
    boot.suspicion, boot.suspicion_is_hearsay = .{ failure, false };
    if (boot.store_errors >= store_errors_max) boot.finish(now_us, .{ .failed = failure });
}

fn suspect(boot: *Boot, suspected: *const boot_event.Suspected) void {
    assert(!boot.isOver());
    if (suspected.is_hearsay and boot.hasOwnSuspicion()) return;
    boot.suspicion = .{
        .phase = boot.current() orelse .dhcp,
        .cause = suspected.cause,
        .text = suspected.text,
    };
    boot.suspicion_is_hearsay = suspected.is_hearsay;
}

/// What the edge has seen itself says more than what others tell of a device.
pub fn hasOwnSuspicion(boot: *const Boot) bool {
    return boot.suspicion != null and !boot.suspicion_is_hearsay;
}

/// The device has proved itself in a later boot. A suspected failure says more than that it did,
/// unless somebody else has told of it.
pub fn supersede(boot: *Boot, at_us: u64) void {
    boot.is_superseded = true;
    boot.touched = true;
    if (boot.isOver()) return;
    const now_us = @max(at_us -| boot.started_us, boot.last_us);
    if (boot.hasOwnSuspicion())
        return boot.finish(now_us, .{ .failed = boot.suspicion.? });
    if (boot.programsLoadedOnly())
        return boot.finish(now_us, .{ .failed = boot.notStartedFailure() });
    boot.finish(now_us, .superseded);
    assert(boot.isOver());
}

/// Boot programs were loaded completely, and nothing followed yet.
fn programsLoadedOnly(boot: *const Boot) bool {
    return !boot.loader_seen and boot.has(.nbp) and boot.current() == .loader;
}

/// Firmware that refuses a program reports it to nobody and restarts its boot.
fn notStartedFailure(boot: *Boot) boot_phase.Failure {
    assert(boot.has(.nbp));
    // No loader ran, so the loader has no phase.
    boot.phases[@backingInt(Phase.loader)] = null;
    const program = if (boot.facts.program) |*found| &found.file else &base.UntrustedText.empty;
    return .{ .phase = .nbp, .cause = .nbp_not_started, .text = program.* };
}

/// Ends a boot that was silent for its phase's limit, or for `limit_us_max` if that is shorter.
pub fn tick(boot: *Boot, at_us: u64, limit_us_max: ?u64) void {
    if (boot.isOver()) return;
    const phase = boot.current() orelse .dhcp;
    const phase_limit_us = phase.silenceLimitUs() orelse return;
    const limit_us = @min(phase_limit_us, limit_us_max orelse phase_limit_us) + boot.menu_wait_us;
    if (at_us < boot.started_us + boot.last_us + limit_us) return;
    boot.finish(at_us - boot.started_us, boot.outcomeOfSilence(phase));
    assert(boot.isOver());
}

/// Returns the suspected failure, or else what the phase and the observed offers imply.
fn outcomeOfSilence(boot: *Boot, phase: Phase) boot_phase.Outcome {
    if (boot.suspicion) |failure| return .{ .failed = failure };
    if (boot.is_left and boot.programsLoadedOnly())
        return .{ .failed = boot.notStartedFailure() };
    switch (phase) {
        .dhcp => if (boot.offerThatWon()) |offer| {
            var buffer: [base.UntrustedText.size_max]u8 = undefined;
            var writer: std.Io.Writer = .fixed(&buffer);
            // A file name that is too long is truncated.
            writer.print("{f} {s}", .{ offer.server, offer.file.slice() }) catch {};
            const text: base.UntrustedText = .init(std.mem.trimEnd(u8, writer.buffered(), " "));
            return .{ .failed = .{ .phase = phase, .cause = .other_offer_won, .text = text } };
        },
        .stage2 => return .{ .failed = .{ .phase = phase, .cause = .guest_stopped_reading } },
        else => {},
    }
    return .{ .silent = phase };
}

/// Returns another server's offer after which the device, which also had ours, sent no more
/// DISCOVER: a device that keeps sending DISCOVER has taken none.
fn offerThatWon(boot: *const Boot) ?*const boot_packets.Offer {
    if (!boot.offers.hasOurs()) return null;
    const other = boot.offers.otherBootOffer() orelse return null;
    const last = boot.last_packets.from_device orelse return other;
    const still_discovers = last.packet.name == .dhcp_discover and last.at_us > other.at_us;
    return if (still_discovers) null else other;
}

/// Moves the boot to the clock of a restarted machine: the monotonic clock starts over, and the
/// wall clock bridges the gap as well as it can.
pub fn rebase(boot: *Boot, now_us: u64, now_unix_ms: u64) void {
    const age_us = (now_unix_ms -| boot.started_unix_ms) * std.time.us_per_ms;
    boot.started_us = now_us -| @max(age_us, boot.last_us);
    assert(boot.started_us <= now_us);
}

/// The edge has restarted: nobody listened in the meantime.
pub fn onRestart(boot: *Boot, now_us: u64) void {
    assert(now_us >= boot.started_us);
    boot.touched = false;
    boot.live_changes = .{};
    boot.series.reads_in_flight = 0;
    // Who read it has ended with the process.
    if (!boot.assignment.image.isKnown()) boot.assignment.image = .to_be_read;
    const age_us = now_us - boot.started_us;
    // From then on it may have been there, but for the time in which this edge has listened.
    if (boot.stream_was_open) boot.away_until_us = age_us -| boot.listened_us;
    if (boot.guest) |*guest| if (!guest.is_silent) {
        guest.heard_us = age_us;
    };
    if (boot.lost) |*lost| if (!lost.is_silent) {
        lost.heard_us = age_us;
    };
}

fn has(boot: *const Boot, phase: Phase) bool {
    return boot.phases[@backingInt(phase)] != null;
}

fn mutable(boot: *Boot, phase: Phase) ?*PhaseRecord {
    return if (boot.phases[@backingInt(phase)]) |*found| found else null;
}

fn begin(boot: *Boot, phase: Phase, start_us: u64, source: boot_phase.Source) void {
    if (boot.has(phase)) return;
    boot.phases[@backingInt(phase)] = .init(start_us, source);
    assert(boot.outcome == null);
    assert(boot.current() != null);
    boot.changed = true;
    if (boot.suspicion) |failure| {
        // Progress beyond the phase in trouble proves that the device overcame it.
        if (@backingInt(failure.phase) < @backingInt(phase)) boot.suspicion = null;
    }
}

fn end(boot: *Boot, phase: Phase, end_us: u64) void {
    const found = boot.mutable(phase) orelse return;
    if (found.end_us != null) return;
    found.end_us = @max(end_us, found.start_us);
    assert(found.durationUs() != null);
    boot.changed = true;
}

/// Ends a phase whose end was not observed at the device's last progress in it.
fn endAtLastAdvance(boot: *Boot, phase: Phase) void {
    assert(phase != .stage2);
    const found = boot.record(phase) orelse return;
    boot.end(phase, found.lastAdvanceUs());
}

fn count(boot: *Boot, phase: Phase, now_us: u64, traffic: Traffic) void {
    const found = boot.mutable(phase) orelse return;
    if (found.end_us == null) found.touch(now_us);
    found.count(traffic);
    boot.series.onSent(now_us, traffic.bytes_out, traffic.retries);
}

fn load(boot: *Boot, phase: Phase, event_us: u64, traffic: Traffic) void {
    assert(phase != .stage2);
    if (traffic.packets_in > 0) boot.advance(phase, event_us);
    boot.count(phase, event_us, traffic);
}

fn advance(boot: *Boot, phase: Phase, event_us: u64) void {
    const found = boot.mutable(phase) orelse return;
    if (found.end_us == null) found.advance(event_us);
}

fn dhcpRequest(boot: *Boot, now_us: u64, request: DhcpRequest) void {
    assert(!boot.isOver());
    boot.end(.firmware, now_us);
    // iPXE is running, so the firmware's ROM loaded it, even if nobody saw that download end.
    const was_loaded = boot.has(.loader) or (boot.has(.nbp) and boot.rom_xid != null);
    if (request.client == .ipxe and was_loaded) boot.onLoaderActivity(now_us);
    const phase = boot.dhcpPhase(now_us);
    const known = switch (request.client) {
        .rom => &boot.rom_xid,
        .ipxe => &boot.ipxe_xid,
    };
    const repeated = request.message == .discover and known.* != null;
    known.* = request.xid;
    if (phase == .loader) boot.loader_steps.onDhcp(now_us);
    boot.count(phase, now_us, .{
        .bytes_in = request.size,
        .packets_in = 1,
        .retries = @intFromBool(repeated),
    });
}

fn dhcpAnswer(boot: *Boot, now_us: u64, size: u32) void {
    assert(!boot.isOver());
    const phase = boot.dhcpPhase(now_us);
    if (phase == .dhcp) boot.last_dhcp_answer_us = now_us;
    if (phase == .loader) boot.loader_steps.onDhcp(now_us);
    boot.count(phase, now_us, .{ .bytes_out = size, .packets_out = 1 });
}

/// DHCP after the first download is the loader's: iPXE runs its own exchange.
fn dhcpPhase(boot: *Boot, now_us: u64) Phase {
    if (boot.has(.loader)) return .loader;
    if (boot.has(.nbp)) return .nbp;
    boot.begin(.dhcp, now_us, .observed);
    assert(boot.has(.dhcp));
    return .dhcp;
}

fn endDhcp(boot: *Boot) void {
    const found = boot.record(.dhcp) orelse return;
    boot.end(.dhcp, boot.last_dhcp_answer_us orelse found.last_us);
}

fn nbpBegin(boot: *Boot, now_us: u64) void {
    assert(!boot.isOver());
    if (boot.has(.loader) and !boot.has(.nbp)) return;
    // A device that requests the file again has overcome the refusal.
    if (boot.suspicion) |failure| if (failure.cause == .tftp_option_refused) {
        boot.suspicion = null;
    };
    boot.end(.firmware, now_us);
    boot.endDhcp();
    boot.begin(.nbp, now_us, .observed);
    if (boot.programsLoadedOnly()) {
        // One program loads another: shim loads GRUB, PXELINUX its modules.
        boot.phases[@backingInt(Phase.loader)] = null;
        boot.changed = true;
    }
    // A second download of a boot program prolongs the phase: OVMF asks for the size first.
    const found = boot.mutable(.nbp).?;
    if (boot.current() == .nbp) found.end_us = null;
}

fn nbpEnd(boot: *Boot, event_us: u64) void {
    boot.advance(.nbp, event_us);
    boot.beginLoader(event_us);
    assert(boot.has(.loader));
}

fn beginLoader(boot: *Boot, now_us: u64) void {
    boot.endAtLastAdvance(.nbp);
    boot.begin(.loader, if (boot.record(.nbp)) |nbp| nbp.end_us.? else now_us, .observed);
    assert(boot.has(.loader));
}

/// The boot program is done, whether or not its end was observed.
fn onLoaderActivity(boot: *Boot, now_us: u64) void {
    assert(!boot.isOver());
    boot.beginLoader(now_us);
    boot.advance(.loader, now_us);
    boot.loader_seen = true;
}

fn loaderBegin(boot: *Boot, now_us: u64, file: LoaderFile) void {
    assert(!boot.isOver());
    if (boot.stream_was_open) return;
    boot.end(.firmware, now_us);
    boot.endDhcp();
    boot.onLoaderActivity(now_us);
    assert(boot.has(.loader));
    boot.loader_steps.onRequest(file, now_us);
    if (file == .kernel or file == .initrd) {
        boot.files_begun = true;
        boot.menu_wait_us = 0;
    }
    if (boot.has(.breather) and file != .script) {
        // The loader had not finished after all: the breather was inferred too early.
        boot.phases[@backingInt(Phase.breather)] = null;
        boot.mutable(.loader).?.end_us = null;
        boot.changed = true;
        boot.advance(.loader, now_us);
    }
}

fn loaderEnd(boot: *Boot, event_us: u64, file: LoaderFile) void {
    assert(!boot.isOver());
    if (boot.stream_was_open) return;
    boot.advance(.loader, event_us);
    boot.loader_steps.onEnd(file, event_us);
    boot.loader_done = boot.loader_done.with(file);
    const wanted = boot.assignment.loader_files;
    if (wanted.toInt() == 0 or !boot.loader_done.contains(wanted)) return;
    boot.endAtLastAdvance(.loader);
    boot.begin(.breather, boot.loadedUs() orelse event_us, .inferred);
    assert(boot.has(.breather));
}

fn stage1Read(boot: *Boot, now_us: u64, size: u64) void {
    assert(!boot.isOver());
    if (boot.stream_was_open) return;
    boot.endDhcp();
    boot.endAtLastAdvance(.nbp);
    boot.endAtLastAdvance(.loader);
    boot.begin(.stage1, now_us, .observed);
    boot.mutable(.stage1).?.countRead(size);
    boot.advance(.stage1, now_us);
}

fn streamOpen(boot: *Boot, now_us: u64, open: *const boot_event.StreamOpen) void {
    boot.facts.mtu = open.mtu;
    boot.facts.cipher = open.cipher;
    if (boot.stream_was_open) {
        if (open.resumed) boot.reconnects += 1;
        boot.touchCurrent(now_us);
        return;
    }
    boot.stream_was_open = true;
    boot.endBreather(now_us);
    assert(boot.has(.breather));
}

/// The operating system is seen for the first time.
fn endBreather(boot: *Boot, now_us: u64) void {
    assert(!boot.isOver());
    boot.end(.firmware, now_us);
    boot.endDhcp();
    boot.endAtLastAdvance(.nbp);
    boot.endAtLastAdvance(.loader);
    boot.endAtLastAdvance(.stage1);
    boot.begin(.breather, boot.loadedUs() orelse now_us, .inferred);
    boot.end(.breather, now_us);
}

/// Time of the last byte for the loader, or of the last read of stage 1.
fn loadedUs(boot: *const Boot) ?u64 {
    for ([_]Phase{ .stage1, .loader, .nbp, .dhcp }) |phase| {
        if (boot.record(phase)) |found| return found.end_us;
    }
    return null;
}

fn streamRead(boot: *Boot, now_us: u64, size: u64, attempt: u16, missing_fragments: u32) void {
    assert(!boot.isOver());
    if (!boot.stream_was_open) return;
    boot.begin(.stage2, now_us, .observed);
    const stage2 = boot.mutable(.stage2).?;
    if (attempt == 0) {
        boot.whole_retransmits_in_row = 0;
        if (boot.suspicion) |failure| if (failure.cause == .path_mtu_black_hole) {
            boot.suspicion = null;
        };
        boot.series.onRead(now_us);
        return stage2.countRead(size);
    }
    boot.series.onSent(now_us, 0, 1);
    boot.onRetransmit(size, missing_fragments);
    stage2.count(.{ .retries = 1, .missing_fragments = missing_fragments });
}

/// Suspects a path MTU black hole: the device retransmits whole reads and reads nothing new, so
/// it receives the edge's small packets but not its large ones.
fn onRetransmit(boot: *Boot, size: u64, missing_fragments: u32) void {
    assert(boot.has(.stage2));
    const mtu = boot.facts.mtu orelse return;
    const is_whole = @as(u64, missing_fragments) * mtu >= size;
    boot.whole_retransmits_in_row = if (is_whole) boot.whole_retransmits_in_row +| 1 else 0;
    if (boot.whole_retransmits_in_row < whole_retransmits_max or boot.hasOwnSuspicion()) return;
    var buffer: [base.UntrustedText.size_max]u8 = undefined;
    const text = std.mem.print(&buffer, "stream packets of {d} bytes do not arrive", .{mtu}) catch
        unreachable;
    boot.suspicion_is_hearsay = false;
    boot.suspicion = .{ .phase = .stage2, .cause = .path_mtu_black_hole, .text = .init(text) };
}

fn touchCurrent(boot: *Boot, now_us: u64) void {
    assert(!boot.isOver());
    const phase = boot.current() orelse return;
    boot.count(phase, now_us, .{});
}

fn becomeReady(boot: *Boot, now_us: u64, by_http: bool) void {
    assert(!boot.isOver());
    if (!boot.stream_was_open and !by_http) return;
    if (boot.stream_was_open) boot.begin(.stage2, now_us, .observed) else boot.endBreather(now_us);
    boot.begin(.ready, now_us, .reported);
    assert(boot.has(.ready));
    boot.finish(now_us, .ready);
}

fn finish(boot: *Boot, now_us: u64, outcome: boot_phase.Outcome) void {
    assert(boot.outcome == null);
    for (&boot.phases, 0..) |*slot, index| {
        const found = if (slot.*) |*value| value else continue;
        if (found.end_us != null) continue;
        // Silence does not belong to the phase in which it began, except to the last phase of a
        // boot that became ready.
        const is_last = boot.current() == @as(Phase, @fromBackingInt(@as(u8, @intCast(index))));
        const ended_us = switch (outcome) {
            .ready, .failed, .local_disk => now_us,
            .silent, .superseded => if (is_last and found.source != .inferred)
                found.last_us
            else
                now_us,
        };
        found.end_us = @max(ended_us, found.start_us);
    }
    for (&boot.phases) |*slot| if (slot.*) |*value| assert(value.end_us != null);
    boot.outcome = outcome;
    assert(boot.isOver());
    boot.live_changes.outcome = true;
    boot.changed = true;
    boot.touched = true;
}

test {
    _ = @import("boot_test.zig");
    _ = @import("event_test.zig");
}
