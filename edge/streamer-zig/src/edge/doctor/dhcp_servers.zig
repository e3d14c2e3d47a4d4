//! Sends DHCP DISCOVERs to the segment as booting devices would, and evaluates the answers. No
//! address is taken: a server forgets an offer that nobody requests. Edges of this product
//! recognize the user class and start no boot for it.

const std = @import("std");
const base = @import("base");
const core = @import("core");
const host = @import("host");
const wire = @import("wire");
const options_module = @import("../options.zig");
const interfaces = @import("interfaces.zig");
const Findings = @import("findings.zig");
const linux = std.os.linux;

const dhcp = wire.dhcp;

/// dnsmasq pings an address for three seconds before it offers it.
const wait_us = 4 * std.time.us_per_s;
const answers_max = 16;
/// BIOS, and UEFI on x86-64 and ARM: a server may have a boot file for only one of them.
const architectures = [_]struct { arch: dhcp.ClientArch, class: []const u8 }{
    .{ .arch = .bios, .class = "PXEClient:Arch:00000:UNDI:002001" },
    .{ .arch = .uefi_x64, .class = "PXEClient:Arch:00007:UNDI:003016" },
    .{ .arch = .uefi_arm64, .class = "PXEClient:Arch:00011:UNDI:003016" },
};

const Answer = struct {
    server: base.Ip4,
    address: ?base.Ip4 = null,
    next_server: base.Ip4 = .zero,
    boots: bool = false,
    file: base.UntrustedText = .empty,
    mtu: ?u16 = null,
};

const Answers = base.BoundedArray(Answer, answers_max);

pub fn check(
    findings: *Findings,
    options: *const options_module.Serve,
    listen: base.Ip4,
    interface: *const interfaces.Interface,
) error{OutOfMemory}!void {
    if (interface.is_loopback) return;
    var answers: Answers = .empty;
    ask(interface, &answers) catch return findings.report(
        .warning,
        .dhcp,
        "The DHCP servers on this segment cannot be queried without CAP_NET_RAW.",
        "Run the doctor as root.",
    );
    var gives_address = false;
    var is_pointed_here = false;
    for (answers.constSlice()) |*answer| {
        if (answer.server.eql(listen)) continue;
        gives_address = gives_address or answer.address != null;
        is_pointed_here = is_pointed_here or (answer.boots and answer.next_server.eql(listen));
        try reportServer(findings, options, listen, interface, answer);
    }
    try reportAbsence(findings, options.dhcp, gives_address, is_pointed_here);
}

fn reportServer(
    findings: *Findings,
    options: *const options_module.Serve,
    listen: base.Ip4,
    interface: *const interfaces.Interface,
    answer: *const Answer,
) error{OutOfMemory}!void {
    const server = answer.server;
    if (answer.boots and !answer.next_server.eql(listen)) try findings.report(
        .problem,
        .dhcp,
        try findings.print("{f} also tells devices what to boot: {f} from {f}.", .{
            server, answer.file, answer.next_server,
        }),
        try findings.print(
            "Remove its boot options (next-server, filename, options 60, 66 and 67), or let them name {f}.",
            .{listen},
        ),
    );
    if (answer.address) |address| {
        if (options.dhcp == .server) {
            try findings.report(
                .problem,
                .dhcp,
                try findings.print("{f} leases addresses, too: it offered {f}{s}.", .{
                    server,
                    address,
                    if (isInPool(options, address)) ", which is in --dhcp-pool" else "",
                }),
                "Switch one of the two off: --dhcp proxy leaves addresses to the other server.",
            );
        } else if (!answer.boots or answer.next_server.eql(listen)) try findings.ok(
            .dhcp,
            "{f} leases addresses: it offered {f}{s}.",
            .{
                server,
                address,
                if (answer.boots) ", and names this edge for booting" else ", and no boot file",
            },
        );
    }
    if (answer.mtu) |mtu| if (mtu != interface.mtu) try findings.report(
        .problem,
        .dhcp,
        try findings.print("{f} tells devices an MTU of {d} bytes, but {s} has {d}.", .{
            server, mtu, interface.found.name(), interface.mtu,
        }),
        "Set the same MTU in both (option 26 of the server, `ip link set` here).",
    );
}

fn reportAbsence(
    findings: *Findings,
    mode: core.dhcp.Service.Mode,
    gives_address: bool,
    is_pointed_here: bool,
) error{OutOfMemory}!void {
    switch (mode) {
        .proxy, .off => if (!gives_address) try findings.report(
            .problem,
            .dhcp,
            "No DHCP server on this segment offered an address within 4 s: devices will not boot.",
            "Start a server or a relay, or let this edge lease addresses: --dhcp server --dhcp-pool FIRST-LAST.",
        ) else if (mode == .off and !is_pointed_here) try findings.report(
            .problem,
            .dhcp,
            "With --dhcp off, a DHCP server has to name this edge for booting, but none does.",
            "Set its next-server and boot file (docs/guides/firmware-and-dhcp.md), " ++
                "or use --dhcp proxy.",
        ),
        .server => if (!gives_address)
            try findings.ok(.dhcp, "No other DHCP server answers on this segment.", .{}),
    }
}

fn isInPool(options: *const options_module.Serve, address: base.Ip4) bool {
    const pools = options.pool orelse return false;
    const pool = pools[0];
    return address.toInt() >= pool.first.toInt() and address.toInt() <= pool.last.toInt();
}

const AskError = host.segment_listener.OpenError || error{OutOfMemory};

fn ask(interface: *const interfaces.Interface, answers: *Answers) AskError!void {
    const gpa = std.heap.smp_allocator;
    const index = interface.found.index;
    // The HTTP port does not matter here.
    var listener = try host.SegmentListener.open(gpa, index, .{ .http = 1 });
    defer listener.close(gpa);
    var random: [10]u8 = undefined;
    host.sys.random(&random);
    const first_xid = std.mem.readInt(u32, random[0..4], .big);
    const begin_us = host.sys.monotonicUs();
    var sent: u32 = 0;
    while (true) {
        const now_us = host.sys.monotonicUs();
        const elapsed_us = now_us - begin_us;
        if (elapsed_us >= wait_us) return;
        // Twice, a second apart, because a packet may be lost.
        if (sent == 0 or (sent == 1 and elapsed_us >= std.time.us_per_s)) {
            for (0..architectures.len) |at| send(&listener, index, at, random[4..10].*, first_xid);
            sent += 1;
        }
        const next_us: u64 = if (sent == 1) std.time.us_per_s else wait_us;
        var polled = [1]linux.pollfd{.{ .fd = listener.fd, .events = linux.POLL.IN, .revents = 0 }};
        _ = linux.poll(&polled, 1, @intCast((next_us - elapsed_us) / std.time.us_per_ms + 1));
        const count = listener.receive();
        for (0..count) |at| {
            const frame = listener.frameAt(at) orelse continue;
            if (!frame.is_outgoing) take(frame.bytes, first_xid, answers);
        }
    }
}

/// Returns a locally administered address, which no network card has.
fn macOf(random: [6]u8, index: usize) base.Mac {
    var mac: base.Mac = .{ .bytes = random };
    mac.bytes[0] = 0x02;
    mac.bytes[5] = (mac.bytes[5] & 0xfc) | @as(u8, @intCast(index));
    return mac;
}

fn send(
    listener: *const host.SegmentListener,
    interface_index: u32,
    at: usize,
    random: [6]u8,
    first_xid: u32,
) void {
    const mac = macOf(random, at);
    const packet: dhcp.Packet = .{
        .op = .request,
        .xid = first_xid +% @as(u32, @intCast(at)),
        // Broadcast answers are heard behind every switch.
        .broadcast = true,
        .chaddr = mac,
        .options = .{
            .message_type = .discover,
            .parameter_request_list = &.{ 1, 3, 26, 43, 54, 60, 66, 67 },
            .max_message_size = 1472,
            .vendor_class = architectures[at].class,
            .user_class = core.boot.client.doctor_class,
            .client_arch = architectures[at].arch,
            .client_ndi = .{ 1, 2, 1 },
        },
    };
    var payload: [dhcp.packet_size_max]u8 = undefined;
    const bytes = dhcp.emit(&packet, &payload) catch unreachable;
    var buffer: [wire.ethernet.frame_size_max]u8 = undefined;
    const frame = wire.ethernet.emitUdp(
        &buffer,
        .{ .source = mac, .destination = .broadcast },
        .{ .ip = .zero, .port = dhcp.client_port },
        .{ .ip = .broadcast, .port = dhcp.server_port },
        bytes,
    ) catch unreachable;
    listener.send(interface_index, frame);
}

fn take(frame: []const u8, first_xid: u32, answers: *Answers) void {
    const packet = wire.ethernet.parse(frame) catch return;
    if (packet.transport != .udp) return;
    var scratch: dhcp.Scratch = undefined;
    const said = dhcp.parse(packet.payload, &scratch) catch return;
    if (said.xid -% first_xid >= architectures.len) return;
    const offer = core.boot.packets.Offer.of(&said, packet.source.ip, false) orelse return;
    const answer = for (answers.slice()) |*known| {
        if (known.server.eql(offer.server)) break known;
    } else added: {
        answers.append(.{ .server = offer.server }) catch return;
        break :added &answers.slice()[answers.constSlice().len - 1];
    };
    if (offer.your_ip) |ip| answer.address = ip;
    if (offer.boots() and !answer.boots) {
        answer.boots = true;
        answer.file = offer.file;
        answer.next_server = offer.next_server orelse offer.server;
    }
    answer.mtu = answer.mtu orelse mtuOf(packet.payload);
}

/// Option 26 (RFC 2132 section 5.1).
fn mtuOf(payload: []const u8) ?u16 {
    if (payload.len < dhcp.header_size) return null;
    var cursor: base.Cursor = .init(payload[dhcp.header_size..]);
    while (cursor.remaining() > 0) {
        const code = cursor.int(u8) catch return null;
        if (code == 0) continue;
        if (code == 255) return null;
        const value = cursor.bytes(cursor.int(u8) catch return null) catch return null;
        if (code == 26 and value.len == 2) return std.mem.readInt(u16, value[0..2], .big);
    }
    return null;
}
