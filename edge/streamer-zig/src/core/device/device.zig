//! A simulated device from power-on to ready: DHCP, TFTP, DHCP again as iPXE, HTTP, a breather, the
//! stream with a recorded boot's reads, READY. Pure: the caller passes time, random bytes and
//! packets, and performs the actions of `next` until there are none; then it waits for `deadline`
//! or for input.

const std = @import("std");
const base = @import("base");
const wire = @import("wire");
const DhcpExchange = @import("dhcp_exchange.zig");
const HttpExchange = @import("http_exchange.zig");
const RouterSolicitor = @import("router_solicitor.zig");
const TftpClient = @import("../tftp/client.zig");
const StreamClient = @import("../stream/client/client.zig");
const ReadAhead = @import("../profile/read_ahead.zig");
const read_trace = @import("read_trace.zig");
const script = @import("script.zig");
const stream_seal = @import("../stream/seal.zig");
const Tuning = @import("../target/tuning.zig");
const assert = std.debug.assert;

pub const Device = @This();
pub const GuestWords = @import("guest_words.zig");

/// Reads of a device in flight; each has a buffer of 128 KiB.
const reads_depth = 4;
const script_size_max = 4096;
/// Scripts that chain to another.
const chains_max = 4;
const http_attempts_max = 5;
const http_retry_us = std.time.us_per_s;
pub const http_request_size_max = HttpExchange.request_size_max;
/// Silence after which a connection is abandoned.
const http_idle_us_max = 10 * std.time.us_per_s;
const tftp_attempts_max = 3;
/// A boot without reads for this long fails; an edge may be restarted and unreachable for less.
const stage2_idle_us_max = 120 * std.time.us_per_s;
/// Bytes of a disk that a loader without a kernel reads by HTTP.
const disk_probe_size = 512;

profile: Profile,
phase: Phase = .off,
power_on_at_us: u64 = 0,
random: Random = undefined,
timings: Timings = .{},
outcome: ?Outcome = null,

dhcp: DhcpExchange = undefined,
tftp: TftpClient = undefined,
tftp_attempts: u8 = 0,
tftp_server: base.Endpoint = undefined,
/// From DHCP: a file name first, the script's URL as iPXE.
tftp_file_buffer: [wire.dhcp.file_size_max]u8 = undefined,
tftp_file_size: u8 = 0,
script_url: script.Url = undefined,
tftp_packet: ?struct { to: base.Endpoint, bytes: TftpClient.Buffer, size: u16 } = null,
/// It waits for an IPv6 router, and downloads nothing.
router: ?RouterSolicitor = null,
/// For how long it has waited for one in this boot.
router_waited_us: u64 = 0,
http: Http = .{},
script_buffer: [script_size_max]u8 = undefined,
script_size: u16 = 0,
chains: u8 = 0,
plan: ?script.Plan = null,
download_index: u8 = 0,

client: StreamClient,
buffers: *[reads_depth][StreamClient.read_size_max]u8,
/// Memory for read-ahead; null: none.
ahead_memory: ?AheadMemory,
/// Null: it reads on demand only, in this boot or always.
ahead: ?ReadAhead = null,
free_buffers: std.bit_set.Static(reads_depth) = .full,
offsets: [reads_depth]u64 = @splat(0),
lengths: [reads_depth]u32 = @splat(0),
asked_at_us: [reads_depth]u64 = @splat(0),
/// Duration of this boot's longest read.
longest_read_us: u64 = 0,
/// A completed read whose bytes the caller is examining.
shown_buffer: ?u8 = null,
read_index: u32 = 0,
reads_done: u32 = 0,
read_due_at_us: u64 = 0,
read_done_at_us: u64 = 0,
breather_until_us: u64 = 0,
guest: GuestWords = .{},
/// What the device offers by itself, while it offers clear text for a boot.
usual_ciphers: ?struct { are: ?wire.stream.Ciphers } = null,
stream_to: base.Endpoint = .{ .ip = .zero, .port = 0 },
pending: Pending = .{},

pub const Phase = enum { off, dhcp, nbp, ipxe_dhcp, loader, breather, stage2, ready, failed };

pub const Profile = @import("device_profile.zig").Profile;
pub const Misbehaviour = @import("device_profile.zig").Misbehaviour;
pub const Random = struct { xid: u32, nonce_seed: [32]u8 };

/// Microseconds since power-on at which each part started; null: it never did.
pub const Timings = struct {
    begins: std.enums.EnumArray(Phase, ?u64) = .initFill(null),
    /// Bytes by TFTP and by HTTP.
    nbp_bytes: u64 = 0,
    loader_bytes: u64 = 0,
};

pub const Outcome = union(enum) {
    ready,
    failed: struct { phase: Phase, text: base.UntrustedText },
};

pub const Action = union(enum) {
    /// To the DHCP server, or by broadcast.
    dhcp: []const u8,
    /// From now on packets have this source address.
    use_address: struct { ip: base.Ip4, subnet_mask: ?base.Ip4 },
    tftp: struct { to: base.Endpoint, bytes: []const u8 },
    /// Sends an IPv6 router solicitation.
    solicit_router,
    /// Opens a connection that replaces any earlier one, and sends the request.
    http_open: struct { to: base.Endpoint, request: []const u8 },
    http_close,
    /// Stream packets go to this endpoint from now on.
    stream_open: base.Endpoint,
    stream: []const u8,
    /// The bytes of the disk at `offset`; valid until the next call of `next`. A caller that finds
    /// them wrong calls `fail`.
    read_done: struct { offset: u64, bytes: []const u8 },
    /// A write that the caller submitted to `client` has ended.
    write_ended: @FieldType(StreamClient.Event, "write_ended"),
    /// Sent once per boot.
    finished: Outcome,
    /// The caller switches the device off, and on again for a restart.
    carry_out: StreamClient.Order,
};

pub const Buffer = [1500]u8;

const AheadMemory = struct { tables: *ReadAhead.Tables, cache: []align(64) u8 };

const Http = struct {
    exchange: HttpExchange = .{},
    is_open: bool = false,
    attempts: u8 = 0,
    due_at_us: u64 = 0,
    idle_until_us: u64 = std.math.maxInt(u64),
};

const Pending = struct {
    use_address: ?base.Ip4 = null,
    subnet_mask: ?base.Ip4 = null,
    http_close: bool = false,
    stream_open: bool = false,
    finished: bool = false,
};

/// Allocates the buffers of its reads, and nothing later.
pub fn init(gpa: std.mem.Allocator, profile: Profile) error{OutOfMemory}!Device {
    assert(profile.reads.len > 0);
    const buffers = try gpa.create([reads_depth][StreamClient.read_size_max]u8);
    errdefer gpa.destroy(buffers);
    var client: StreamClient = try .init(gpa, .{
        .reads_max = reads_depth + ReadAhead.client_places,
        .writes_max = profile.writes_max,
        .codecs = StreamClient.codecs,
        .rtt_probe_us = StreamClient.rtt_probe_us_default,
    });
    errdefer client.deinit(gpa);
    if (profile.read_ahead_bytes < ReadAhead.cache_size_min)
        return .{ .profile = profile, .buffers = buffers, .client = client, .ahead_memory = null };
    const tables = try gpa.create(ReadAhead.Tables);
    errdefer gpa.destroy(tables);
    // Raw: unused parts take no memory.
    const cache = gpa.rawAlloc(profile.read_ahead_bytes, .@"64", @returnAddress()) orelse
        return error.OutOfMemory;
    return .{ .profile = profile, .buffers = buffers, .client = client, .ahead_memory = .{
        .tables = tables,
        .cache = @alignCast(cache[0..profile.read_ahead_bytes]),
    } };
}

pub fn deinit(device: *Device, gpa: std.mem.Allocator) void {
    device.client.deinit(gpa);
    if (device.ahead_memory) |*memory| {
        gpa.destroy(memory.tables);
        gpa.rawFree(memory.cache, .@"64", @returnAddress());
    }
    gpa.destroy(device.buffers);
    device.* = undefined;
}

/// Starts a boot, even in the middle of another one. The caller drops the earlier boot's
/// connections and sockets.
pub fn powerOn(device: *Device, now_us: u64, random: Random) void {
    const profile = device.profile;
    var client = device.client;
    if (device.usual_ciphers) |usual| client.options.ciphers = usual.are;
    const buffers = device.buffers;
    const memory = device.ahead_memory;
    device.* =
        .{ .profile = profile, .client = client, .buffers = buffers, .ahead_memory = memory };
    device.readAhead(null);
    device.power_on_at_us = now_us;
    device.random = random;
    device.transition(now_us, .dhcp);
    device.beginDhcp(now_us, .rom);
}

/// When the read of the `read_done` that is being examined was requested.
pub fn shownAskedAtUs(device: *const Device) u64 {
    return device.asked_at_us[device.shown_buffer.?];
}

pub fn powerOff(device: *Device) void {
    device.phase = .off;
    device.pending = .{};
    device.guest = .{};
    assert(!device.isBooting());
}

/// In the middle of a boot: neither off nor over.
pub fn isBooting(device: *const Device) bool {
    return switch (device.phase) {
        .off, .ready, .failed => false,
        .dhcp, .nbp, .ipxe_dhcp, .loader, .breather, .stage2 => true,
    };
}

pub fn receiveDhcp(device: *Device, now_us: u64, payload: []const u8) void {
    if (device.phase != .dhcp and device.phase != .ipxe_dhcp) return;
    _ = device.dhcp.receive(now_us, payload);
}

pub fn receiveTftp(device: *Device, now_us: u64, from: base.Endpoint, payload: []const u8) void {
    if (device.timings.begins.get(.nbp) == null) return;
    assert(device.tftp_attempts > 0);
    var buffer: TftpClient.Buffer = undefined;
    device.takeTftpStep(now_us, device.tftp.receive(now_us, from, payload, &buffer));
}

/// Takes bytes of the open connection.
pub fn receiveHttp(device: *Device, now_us: u64, bytes: []const u8) void {
    if (device.phase != .loader or !device.http.is_open) return;
    device.http.idle_until_us = now_us + http_idle_us_max;
    const body = device.http.exchange.receive(bytes);
    assert(device.script_size <= device.script_buffer.len);
    device.timings.loader_bytes += body.len;
    if (device.plan == null) {
        if (body.len > device.script_buffer.len - device.script_size)
            return device.fail(now_us, "boot script longer than 4096 bytes");
        @memcpy(device.script_buffer[device.script_size..][0..body.len], body);
        device.script_size += @intCast(body.len);
    }
    switch (device.http.exchange.state) {
        .head, .body => {},
        .failed => device.retryHttp(now_us),
        .done => device.finishHttp(now_us),
    }
}

/// The connection ended, or was never established.
pub fn httpClosed(device: *Device, now_us: u64) void {
    if (device.phase != .loader or !device.http.is_open) return;
    device.retryHttp(now_us);
}

/// A router has answered, if only that it is none.
pub fn receiveRouterAdvertisement(device: *Device, now_us: u64) void {
    if (device.phase != .loader or device.router == null) return;
    device.endRouterWait(now_us);
    assert(device.router == null);
}

fn endRouterWait(device: *Device, now_us: u64) void {
    assert(!device.http.is_open);
    device.router_waited_us = now_us - device.router.?.since_us;
    device.router = null;
    device.http.due_at_us = now_us;
    assert(device.http.due_at_us >= device.power_on_at_us);
}

pub fn receiveStream(device: *Device, now_us: u64, payload: []const u8) void {
    if (device.phase != .stage2 and device.phase != .ready) return;
    assert(device.client.state != .idle);
    device.client.receive(now_us, payload);
}

/// Ends the boot, for example because bytes were wrong.
pub fn fail(device: *Device, now_us: u64, text: []const u8) void {
    assert(device.isBooting());
    device.outcome = .{ .failed = .{ .phase = device.phase, .text = .init(text) } };
    device.pending.finished = true;
    device.pending.http_close = device.http.is_open;
    device.transition(now_us, .failed);
}

/// Returns the next action; slices are valid until the next call.
pub fn next(device: *Device, now_us: u64, buffer: *Buffer) ?Action {
    if (device.shown_buffer) |index| device.free_buffers.set(index);
    device.shown_buffer = null;
    device.checkLimits(now_us);
    if (device.takePending(buffer)) |action| return action;
    switch (device.phase) {
        .off, .failed => return null,
        .dhcp, .ipxe_dhcp => if (device.dhcp.transmit(now_us, buffer)) |packet|
            return .{ .dhcp = packet },
        .nbp => {},
        .loader => {
            if (device.router) |*router| {
                if (router.takeDue(now_us)) return .solicit_router;
                if (router.hasGivenUp(now_us)) device.endRouterWait(now_us);
            }
            if (device.router == null)
                if (device.openHttp(now_us, buffer)) |action| return action;
        },
        .breather => if (now_us >= device.breather_until_us) device.beginStream(now_us),
        .stage2, .ready => if (device.nextOfStream(now_us, buffer)) |action| return action,
    }
    return device.takePending(buffer);
}

/// Returns when to call `next` if no input arrives; null: never.
pub fn deadline(device: *const Device) ?u64 {
    return switch (device.phase) {
        .off, .failed => null,
        .dhcp, .ipxe_dhcp => device.dhcp.deadline(),
        .nbp => device.tftp.deadline_us,
        .loader => if (device.router) |*router|
            router.deadline()
        else if (device.http.is_open) device.http.idle_until_us else device.http.due_at_us,
        .breather => device.breather_until_us,
        .ready => @min(device.client.deadline() orelse
            std.math.maxInt(u64), device.guest.deadline() orelse std.math.maxInt(u64)),
        .stage2 => at: {
            var at_us = device.client.deadline() orelse std.math.maxInt(u64);
            at_us = @min(at_us, device.read_done_at_us + stage2_idle_us_max);
            const may_submit = device.free_buffers.count() > 0 and
                device.read_index < device.profile.reads.len and !GuestWords.isBeforeSystem(device);
            if (device.client.state == .established and may_submit)
                at_us = @min(at_us, device.read_due_at_us);
            break :at at_us;
        },
    };
}

fn takePending(device: *Device, buffer: *Buffer) ?Action {
    const pending = &device.pending;
    if (pending.use_address) |ip| {
        pending.use_address = null;
        return .{ .use_address = .{ .ip = ip, .subnet_mask = pending.subnet_mask } };
    }
    if (device.tftp_packet) |*packet| {
        const bytes = buffer[0..packet.size];
        const to = packet.to;
        @memcpy(bytes, packet.bytes[0..packet.size]);
        device.tftp_packet = null;
        return .{ .tftp = .{ .to = to, .bytes = bytes } };
    }
    if (pending.http_close) {
        pending.http_close = false;
        return .http_close;
    }
    if (pending.stream_open) {
        pending.stream_open = false;
        device.stream_to = device.client.failover.current;
        return .{ .stream_open = device.stream_to };
    }
    if (pending.finished) {
        pending.finished = false;
        return .{ .finished = device.outcome.? };
    }
    return null;
}

fn checkLimits(device: *Device, now_us: u64) void {
    switch (device.phase) {
        .off, .ready, .failed, .breather => {},
        .dhcp, .ipxe_dhcp => {
            device.dhcp.tick(now_us);
            if (device.dhcp.state == .failed)
                return device.fail(now_us, "no DHCP answer with a boot program");
            if (device.dhcp.answer()) |*answer| device.finishDhcp(now_us, answer);
        },
        .nbp => {
            var buffer: TftpClient.Buffer = undefined;
            device.takeTftpStep(now_us, device.tftp.tick(now_us, &buffer));
        },
        .loader => if (device.http.is_open and now_us >= device.http.idle_until_us)
            device.retryHttp(now_us),
        .stage2 => if (now_us -| device.read_done_at_us >= stage2_idle_us_max)
            device.fail(now_us, "nothing read for 120 s"),
    }
}

fn beginDhcp(device: *Device, now_us: u64, stage: DhcpExchange.Stage) void {
    assert(device.isBooting());
    device.dhcp = .init(now_us, .{
        .mac = device.profile.mac,
        .stage = stage,
        .xid = device.random.xid +% @backingInt(stage),
        .has_address = device.profile.own_address != null,
        .broadcast = device.profile.own_address == null,
    });
}

fn finishDhcp(device: *Device, now_us: u64, answer: *const DhcpExchange.Answer) void {
    assert(device.isBooting());
    if (answer.address) |ip| {
        device.pending.use_address = ip;
        device.pending.subnet_mask = answer.subnet_mask;
    }
    if (device.phase == .ipxe_dhcp) {
        device.transition(now_us, .loader);
        device.http = .{ .due_at_us = now_us };
        if (device.profile.waits_for_router) device.router = .{ .since_us = now_us };
        // The URL outlives the exchange in the file buffer.
        const size = answer.file_size;
        @memcpy(device.tftp_file_buffer[0..size], answer.file());
        device.script_size = 0;
        device.chains = 0;
        device.plan = null;
        device.download_index = 0;
        if (script.Url.parse(device.tftp_file_buffer[0..size])) |url| {
            device.script_url = url;
        } else device.fail(now_us, "the boot file for iPXE is no http URL");
        return;
    }
    if (device.profile.misbehaviour == .dhcp_only)
        return device.fail(now_us, "asks for nothing after DHCP, as it was told");
    device.transition(now_us, .nbp);
    const size = answer.file_size;
    @memcpy(device.tftp_file_buffer[0..size], answer.file());
    device.tftp_server = .{ .ip = answer.next_server, .port = device.profile.tftp_port };
    device.tftp_file_size = size;
    device.beginTftp(now_us);
}

fn beginTftp(device: *Device, now_us: u64) void {
    assert(device.phase == .nbp);
    device.tftp_attempts += 1;
    assert(device.tftp_attempts <= tftp_attempts_max);
    device.timings.nbp_bytes = 0;
    device.tftp = .init(.{
        .server = device.tftp_server,
        .file_name = device.tftp_file_buffer[0..device.tftp_file_size],
    });
    var buffer: TftpClient.Buffer = undefined;
    device.takeTftpStep(now_us, device.tftp.start(now_us, &buffer));
}

fn takeTftpStep(device: *Device, now_us: u64, step: TftpClient.Step) void {
    if (step.content) |content| device.timings.nbp_bytes += content.bytes.len;
    if (step.send) |packet| {
        device.tftp_packet =
            .{ .to = packet.to, .bytes = undefined, .size = @intCast(packet.bytes.len) };
        @memcpy(device.tftp_packet.?.bytes[0..packet.bytes.len], packet.bytes);
    }
    assert(device.tftp_attempts > 0);
    if (device.phase != .nbp) return;
    switch (step.outcome orelse return) {
        .done => {
            device.transition(now_us, .ipxe_dhcp);
            device.beginDhcp(now_us, .ipxe);
        },
        .failed => |failure| switch (failure) {
            .timeout => if (device.tftp_attempts < tftp_attempts_max)
                device.beginTftp(now_us)
            else
                device.fail(now_us, "TFTP: no answer"),
            .bad_options => device.fail(now_us, "TFTP: wrong options in the OACK"),
            .server_error => |said| device.fail(now_us, said.text.slice()),
        },
    }
}

fn openHttp(device: *Device, now_us: u64, buffer: *Buffer) ?Action {
    assert(device.phase == .loader);
    if (device.http.is_open or now_us < device.http.due_at_us) return null;
    const url = if (device.plan) |*plan|
        plan.downloads.buffer[device.download_index]
    else
        device.script_url;
    const range: ?u32 =
        if (device.plan) |plan| (if (plan.is_disk) disk_probe_size else null) else null;
    const text = HttpExchange.request(
        url.endpoint,
        url.path,
        range,
        buffer[0..HttpExchange.request_size_max],
    ) orelse {
        device.fail(now_us, "a URL is too long");
        return device.takePending(buffer);
    };
    device.http.is_open = true;
    device.http.attempts += 1;
    device.http.exchange = .{};
    device.http.idle_until_us = now_us + http_idle_us_max;
    return .{ .http_open = .{ .to = url.endpoint, .request = text } };
}

fn retryHttp(device: *Device, now_us: u64) void {
    assert(device.phase == .loader);
    assert(device.http.attempts <= http_attempts_max);
    device.pending.http_close = device.http.is_open;
    device.http.is_open = false;
    if (device.plan == null) device.script_size = 0;
    if (device.http.attempts == http_attempts_max)
        return device.fail(now_us, "HTTP: no whole answer");
    device.http.due_at_us = now_us + http_retry_us;
}

fn finishHttp(device: *Device, now_us: u64) void {
    assert(device.phase == .loader);
    device.pending.http_close = true;
    device.http.is_open = false;
    const status = device.http.exchange.status;
    if (status != 200 and status != 206) {
        var text: [32]u8 = undefined;
        return device.fail(now_us, std.mem.print(&text, "HTTP: status {d}", .{status}) catch
            unreachable);
    }
    device.http = .{ .due_at_us = now_us };
    if (device.plan != null) {
        device.download_index += 1;
    } else switch (script.parse(device.script_buffer[0..device.script_size])) {
        .plan => |plan| device.plan = plan,
        .chain => |chain| {
            device.chains += 1;
            device.script_size = 0;
            const text = chain.write(&device.tftp_file_buffer);
            if (device.chains <= chains_max) if (script.Url.parse(text orelse "")) |url| {
                device.script_url = url;
                return;
            };
            return device.fail(now_us, "boot script: it leads nowhere");
        },
        .failure => |failure| {
            var text: [48]u8 = undefined;
            if (failure.said.len > 0) return device.fail(now_us, failure.said);
            return device.fail(
                now_us,
                std.mem.print(&text, "boot script: line {d}", .{failure.line}) catch unreachable,
            );
        },
    }
    if (device.download_index < device.plan.?.downloads.count) return;
    device.transition(now_us, .breather);
    device.breather_until_us = now_us + device.profile.breather_us;
}

/// A simulated device says so of its card, too.
const simulated_machine: wire.stream.Machine = .{
    .cpu_count = 4,
    .memory_mib = 8192,
    .link_mbit = 1000,
    .driver = wire.stream.Machine.paddedDriver("bootfarm-sim"),
    .model = wire.stream.Machine.paddedModel("Bootfarm simulated device"),
};

const simulated_card: wire.stream.NetworkCard =
    .{ .duplex = .full, .mtu = 1500, .link_mbit = 1000 };

fn beginStream(device: *Device, now_us: u64) void {
    assert(device.plan != null);
    const plan = &device.plan.?;
    device.transition(now_us, .stage2);
    device.pending.stream_open = true;
    device.read_done_at_us = now_us;
    var token = plan.token;
    if (device.profile.misbehaviour == .wrong_token) token[0] ^= 1;
    device.client.options.version_max = device.profile.stream_version_max;
    device.tune(plan);
    device.client.start(now_us, .{
        .boot_id = plan.boot_id,
        .token = token,
        .nonce_seed = device.random.nonce_seed,
        .edge = plan.stream,
        .device_key = if (device.profile.key) |*key| key.public_key else null,
        .machine = simulated_machine,
        .card = simulated_card,
    });
}

/// A former boot may have had other settings.
fn tune(device: *Device, plan: *const script.Plan) void {
    const tuning = &plan.tuning;
    const options = &device.client.options;
    if (plan.clear) {
        device.usual_ciphers = .{ .are = options.ciphers };
        options.ciphers = stream_seal.withClear();
    }
    options.codecs = if (tuning.codec == .off) 0 else StreamClient.codecs;
    options.request_bytes_max = tuning.read_limit orelse StreamClient.read_size_max;
    options.packet_size_max = tuning.packetSize() orelse wire.stream.packet_size_ethernet;
    device.readAhead(tuning.read_ahead);
}

/// Null: as the device does by itself.
fn readAhead(device: *Device, wanted: ?Tuning.ReadAhead) void {
    device.ahead = null;
    const memory = device.ahead_memory orelse return;
    const usual: Tuning.ReadAhead = if (device.profile.reads_ahead_if_told) .off else .by_memory;
    const size: usize = switch (wanted orelse usual) {
        .off => return,
        .by_memory => memory.cache.len,
        .bytes => |bytes| @min(bytes, memory.cache.len),
    };
    if (size < ReadAhead.cache_size_min) return;
    device.ahead = .init(memory.tables, memory.cache[0..size]);
}

fn nextOfStream(device: *Device, now_us: u64, buffer: *Buffer) ?Action {
    assert(device.client.state != .idle);
    if (device.pending.stream_open) return device.takePending(buffer);
    if (device.phase == .stage2 and device.client.state == .established) device.submitDue(now_us);
    while (device.nextStreamEvent()) |event| {
        if (device.takeStreamEvent(now_us, event, buffer)) |action| return action;
    }
    if (device.ahead) |*ahead| ahead.pump(&device.client);
    if (device.phase == .failed) return device.takePending(buffer);
    if (device.guest.dueOrder(now_us)) |order| return .{ .carry_out = order };
    GuestWords.say(device, now_us);
    device.client.onTimer(now_us);
    // A refusal may already have changed it back.
    device.pending.stream_open = !device.stream_to.eql(device.client.failover.current);
    if (device.pending.stream_open) return device.takePending(buffer);
    const packet = device.client.transmit(
        now_us,
        buffer[0..wire.stream.sealed_request_size_max],
    ) orelse return null;
    return .{ .stream = packet };
}

/// Handles the client's events, and the ends of reads that caused none.
fn nextStreamEvent(device: *Device) ?StreamClient.Event {
    const ahead = if (device.ahead) |*ahead| ahead else return device.client.nextEvent();
    while (device.client.nextEvent()) |event| if (!ahead.take(&device.client, &event)) return event;
    const tag = ahead.nextDone() orelse return null;
    const slot: u8 = @intCast(tag);
    assert(slot < reads_depth);
    return .{
        .read_done = .{ .tag = tag, .buffer = device.buffers[slot][0..device.lengths[slot]] },
    };
}

fn takeStreamEvent(
    device: *Device,
    now_us: u64,
    event: StreamClient.Event,
    buffer: *Buffer,
) ?Action {
    switch (event) {
        .established => |established| if (!established.resumed) {
            device.read_due_at_us, device.read_done_at_us = .{ now_us, now_us };
            if (device.ahead) |*ahead| ahead.start(&device.client);
            device.submitDue(now_us);
        },
        .read_done => |read| {
            device.reads_done += 1;
            assert(device.reads_done <= device.read_index);
            device.read_done_at_us = now_us;
            const asked_at_us = device.asked_at_us[@intCast(read.tag)];
            device.longest_read_us = @max(device.longest_read_us, now_us - asked_at_us);
            device.client.times.onAnswer(now_us, asked_at_us);
            device.shown_buffer = @intCast(read.tag);
            if (device.profile.misbehaviour == .stop_reading)
                return device.endStream(now_us, buffer, "stops reading, as it was told");
            if (device.reads_done == device.profile.reads.len) {
                if (device.ahead) |*ahead| ahead.stop(&device.client);
                device.client.reportReady(
                    now_us,
                    .ready,
                    now_us - device.power_on_at_us - device.timings.begins.get(.breather).?,
                    .{ .code = "bootfarm-sim" },
                );
            }
            return .{ .read_done = .{ .offset = device.offsets[read.tag], .bytes = read.buffer } };
        },
        // It sends none.
        .account_acknowledged => {},
        .ready_acknowledged => if (device.phase == .stage2) {
            device.outcome = .ready;
            device.pending.finished = true;
            device.transition(now_us, .ready);
            device.guest.begin(GuestWords.beginsOf(device));
        },
        // The client tries the next edge.
        .refused_elsewhere => {},
        .order => |order| device.guest.take(now_us, order),
        .report_acknowledged => device.guest.acknowledged(now_us),
        .sign => |digest| device.client.sign(now_us, device.profile.key.?.sign(&digest)),
        .refused => |code| return device.endStream(now_us, buffer, @tagName(code)),
        .version_changed => return device.endStream(
            now_us,
            buffer,
            "the version changed under the boot",
        ),
        .cache_lost => return device.endStream(now_us, buffer, "its write cache is gone"),
        .read_failed => |failure| return device.endStream(now_us, buffer, @tagName(failure.code)),
        .write_ended => |ended| return .{ .write_ended = ended },
    }
    return null;
}

fn endStream(device: *Device, now_us: u64, buffer: *Buffer, text: []const u8) ?Action {
    // A running device keeps running: it has no reads left to lose. It waits for an order.
    if (device.phase == .ready) {
        if (device.client.state == .ended) device.client.reportLost(now_us, null);
        return null;
    }
    device.fail(now_us, text);
    return device.takePending(buffer);
}

/// Submits the reads whose think time is over, as far as buffers are free.
fn submitDue(device: *Device, now_us: u64) void {
    assert(device.phase == .stage2);
    const reads = device.profile.reads;
    while (device.read_index < reads.len and now_us >= device.read_due_at_us) {
        if (GuestWords.isBeforeSystem(device)) return;
        const slot: u8 = @intCast(device.free_buffers.findFirstSet() orelse return);
        const read = reads[device.read_index].within(device.client.session.?.disk_size);
        assert(slot < reads_depth);
        device.offsets[slot] = read.offset;
        device.lengths[slot] = read.length;
        device.asked_at_us[slot] = now_us;
        const bytes = device.buffers[slot][0..read.length];
        const asked = if (device.ahead) |*ahead| ahead.read(
            &device.client,
            slot,
            read.offset,
            bytes,
        ) else device.client.submit(slot, read.offset, bytes);
        asked catch return;
        device.client.times.onDemand(now_us);
        device.free_buffers.unset(slot);
        device.read_index += 1;
        if (device.read_index == reads.len) return;
        // Counted from the request, not from when it was due: a machine that waited thinks later.
        const gap_us = reads[device.read_index].at_us - reads[device.read_index - 1].at_us;
        const speed = device.profile.speed_per_mille;
        device.read_due_at_us = now_us + if (speed == 0) 0 else gap_us * 1000 / speed;
    }
}

fn transition(device: *Device, now_us: u64, phase: Phase) void {
    const allowed = switch (phase) {
        .off => true,
        .dhcp => device.phase == .off,
        .nbp => device.phase == .dhcp,
        .ipxe_dhcp => device.phase == .nbp,
        .loader => device.phase == .ipxe_dhcp,
        .breather => device.phase == .loader,
        .stage2 => device.phase == .breather,
        .ready => device.phase == .stage2,
        .failed => device.isBooting(),
    };
    assert(allowed);
    device.phase = phase;
    device.timings.begins.set(phase, now_us - device.power_on_at_us);
}
