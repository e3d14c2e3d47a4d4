//! The command lines of `bootfarm-edge serve`, `doctor` and `leases`. A wrong option is explained
//! in one sentence.

const std = @import("std");
const base = @import("base");
const core = @import("core");
const agent = @import("agent");
const host = @import("host");
pub const Complaint = @import("complaint.zig");
const UplinkOptions = @import("uplink_options.zig");
const TableSizes = @import("table_sizes.zig");
const subnet_settings = @import("subnet_settings.zig");
const trusted_networks = @import("trusted_networks.zig");

pub const Serve = struct {
    vdisk: ?[]const u8 = null,
    /// A version in the store, without a control plane.
    version: ?base.Uuid = null,
    kernel: ?[]const u8 = null,
    initrd: ?[]const u8 = null,
    cmdline: []const u8 = "",
    /// The first one is the edge's own where only one is needed.
    listens: std.ArrayList(base.Ip4) = .empty,
    dhcp: core.dhcp.Service.Mode = .proxy,
    pool: ?[1]Pool = null,
    subnets: std.ArrayList(subnet_settings.SubnetSettings) = .empty,
    dhcp_config: ?[]const u8 = null,
    /// Networks behind routers whose machines may name any MAC address.
    trusted: std.ArrayList(base.Ip4Prefix) = .empty,
    router_mode: core.site.RouterDiscovery.Mode = .booting,
    ports: host.EdgeSockets.Ports = .{},
    /// Threads that serve the stream, each with its own socket; null: derived from the number of
    /// cores.
    stream_shards: ?u16 = null,
    /// Memory of answer pieces in bytes, 0 for none; null: by the machine's memory.
    packed_memory: ?u64 = null,
    /// Devices that the tables have slots for; null: derived from the memory.
    devices_max: ?u32 = null,
    boot_files: ?[]const u8 = null,
    data: ?[]const u8 = null,
    store: ?[]const u8 = null,
    wol_target: base.Endpoint = .{ .ip = .broadcast, .port = 9 },
    json: bool = false,
    /// Ends a boot as silent after at most this time.
    silence_limit_s: ?u32 = null,
    /// How long a program that has taken over must serve; null: the default.
    probation_s: ?u32 = null,
    /// The program that switches devices on.
    power_hook: ?[]const u8 = null,
    /// Where packets of boots are written without a control plane.
    capture: ?[]const u8 = null,
    /// Disk space for reports, in bytes.
    report_log_size: u64 = core.uplink.report_log.size_max_default,
    /// Bytes of the store's file system that write caches leave free; null: a share of it.
    reserve: ?u64 = null,
    /// The write cache of every device without a control plane.
    write_cache: agent.write_caches.CacheSettings = .{},
    /// Learns what boots read, hands it to devices and reads it ahead.
    boot_profile: bool = true,
    /// Sends streams in clear text.
    clear: bool = false,
    /// Where `/metrics` is served; null: nowhere.
    metrics: ?base.Endpoint = null,
    uplink: UplinkOptions = .{},
    import_sources: core.uplink.ImportUrl.Sources = .{},

    pub const Pool = core.dhcp.network.Pool;

    /// Returns whether the edge works without a control plane: every device boots one disk.
    pub fn isAlone(serve: *const Serve) bool {
        return serve.vdisk != null or serve.version != null;
    }
};

pub const Error = Complaint.Error;

pub const Arguments = struct {
    /// The command that takes the options; error messages name its help.
    command: []const u8,
    rest: []const [:0]const u8,
    complaint: *Complaint,

    pub fn noOption(arguments: *const Arguments, name: []const u8) Error {
        return arguments.complaint.set("There is no option {s}; see bootfarm-edge {s} --help.", .{
            name, arguments.command,
        });
    }

    pub fn notAnOption(arguments: *const Arguments, text: []const u8) Error {
        return arguments.complaint.set("'{s}' is not an option; see bootfarm-edge {s} --help.", .{
            text, arguments.command,
        });
    }

    /// Returns the next option's name and, if it was written with `=`, its value.
    pub fn next(arguments: *Arguments) Error!?struct { name: []const u8, value: ?[]const u8 } {
        if (arguments.rest.len == 0) return null;
        const argument = arguments.rest[0];
        arguments.rest = arguments.rest[1..];
        if (!std.mem.startsWith(u8, argument, "--")) return arguments.notAnOption(argument);
        if (std.mem.findScalar(u8, argument, '=')) |at|
            return .{ .name = argument[0..at], .value = argument[at + 1 ..] };
        return .{ .name = argument, .value = null };
    }

    pub fn value(
        arguments: *Arguments,
        name: []const u8,
        inline_value: ?[]const u8,
    ) Error![]const u8 {
        if (inline_value) |text| return text;
        if (arguments.rest.len == 0) return arguments.complaint.set("{s} needs a value.", .{name});
        defer arguments.rest = arguments.rest[1..];
        return arguments.rest[0];
    }
};

const ServeOption = enum {
    @"--vdisk",
    @"--version",
    @"--kernel",
    @"--initrd",
    @"--cmdline",
    @"--listen",
    @"--dhcp",
    @"--dhcp-pool",
    @"--subnet",
    @"--dhcp-config",
    @"--trust-mac-from",
    @"--router-advertisement",
    @"--no-router-advertisement",
    @"--dhcp-port",
    @"--pxe-port",
    @"--tftp-port",
    @"--http-port",
    @"--stream-port",
    @"--stream-shards",
    @"--packed-memory",
    @"--devices-max",
    @"--peer-port",
    @"--boot-files",
    @"--data",
    @"--store",
    @"--wol-target",
    @"--reserve",
    @"--silence-limit",
    @"--probation",
    @"--capture",
    @"--power-hook",
    @"--report-log",
    @"--metrics",
    @"--write-cache",
    @"--write-cache-size",
    @"--write-cache-full",
    @"--write-cache-of-another-version",
    @"--boot-profile",
    @"--clear",
    @"--insecure-uplink",
    @"--ca-file",
    @"--import-from",
    @"--proxy",
    @"--json",
};

pub const ParseError = Error || error{OutOfMemory};

pub fn parseServe(
    arena: std.mem.Allocator,
    rest: []const [:0]const u8,
    complaint: *Complaint,
) ParseError!Serve {
    const serve = try parseOptions(arena, "serve", rest, complaint);
    try checkServe(&serve, complaint);
    return serve;
}

/// The doctor takes the options of `serve` and checks what an edge with them would find.
pub fn parseDoctor(
    arena: std.mem.Allocator,
    rest: []const [:0]const u8,
    complaint: *Complaint,
) ParseError!Serve {
    const serve = try parseOptions(arena, "doctor", rest, complaint);
    if (serve.listens.items.len == 0) return complaint.set(
        "doctor needs --listen IP, the address of this machine that devices reach.",
        .{},
    );
    return serve;
}

fn parseOptions(
    arena: std.mem.Allocator,
    command: []const u8,
    rest: []const [:0]const u8,
    complaint: *Complaint,
) ParseError!Serve {
    var arguments: Arguments = .{ .command = command, .rest = rest, .complaint = complaint };
    var serve: Serve = .{};
    while (try arguments.next()) |argument| {
        const option = std.meta.stringToEnum(ServeOption, argument.name) orelse
            return arguments.noOption(argument.name);
        switch (option) {
            .@"--json" => serve.json = true,
            .@"--clear" => serve.clear = true,
            .@"--insecure-uplink" => serve.uplink.insecure = true,
            .@"--router-advertisement" => serve.router_mode = .everybody,
            .@"--no-router-advertisement" => serve.router_mode = .never,
            else => {
                const text = try arguments.value(argument.name, argument.value);
                try setServe(arena, &serve, option, text, complaint);
            },
        }
    }
    return serve;
}

fn setServe(
    arena: std.mem.Allocator,
    serve: *Serve,
    option: ServeOption,
    text: []const u8,
    complaint: *Complaint,
) (Error || error{OutOfMemory})!void {
    const name = @tagName(option);
    switch (option) {
        .@"--vdisk" => serve.vdisk = text,
        .@"--version" => serve.version = base.Uuid.parse(text) catch
            return complaint.set(
                "--version is the id of a version in the store, not '{s}'.",
                .{text},
            ),
        .@"--kernel" => serve.kernel = text,
        .@"--initrd" => serve.initrd = text,
        .@"--cmdline" => serve.cmdline = text,
        .@"--listen" => try serve.listens.append(arena, base.Ip4.parse(text) catch
            return complaint.set(
                "--listen needs an IPv4 address of this machine, not '{s}'.",
                .{text},
            )),
        .@"--dhcp" => serve.dhcp = std.meta.stringToEnum(core.dhcp.Service.Mode, text) orelse
            return complaint.set("--dhcp is proxy, server or off, not '{s}'.", .{text}),
        .@"--subnet" => try serve.subnets.append(
            arena,
            try subnet_settings.parse(arena, text, complaint),
        ),
        .@"--dhcp-config" => serve.dhcp_config = text,
        .@"--trust-mac-from" => try trusted_networks.parse(arena, &serve.trusted, text, complaint),
        .@"--dhcp-pool" => serve.pool = .{try parsePool(text, complaint)},
        .@"--dhcp-port" => serve.ports.dhcp = try parsePort(name, text, complaint),
        .@"--pxe-port" => serve.ports.pxe = try parsePort(name, text, complaint),
        .@"--tftp-port" => serve.ports.tftp = try parsePort(name, text, complaint),
        .@"--http-port" => serve.ports.http = try parsePort(name, text, complaint),
        .@"--stream-port" => serve.ports.stream = try parsePort(name, text, complaint),
        .@"--devices-max" => serve.devices_max = try parseDevices(text, complaint),
        .@"--stream-shards", .@"--packed-memory" => try setStream(serve, option, text, complaint),
        .@"--peer-port" => serve.ports.peer = try parsePort(name, text, complaint),
        .@"--boot-files" => serve.boot_files = text,
        .@"--data" => serve.data = text,
        .@"--store" => serve.store = text,
        .@"--wol-target" => serve.wol_target = base.Endpoint.parse(text) catch
            return complaint.set(
                "--wol-target is IP:PORT, for example 255.255.255.255:9, not '{s}'.",
                .{text},
            ),
        .@"--capture" => serve.capture = text,
        .@"--power-hook" => serve.power_hook = text,
        .@"--report-log" => serve.report_log_size = try parseSize(name, text, complaint),
        .@"--reserve" => serve.reserve = try parseReserve(name, text, complaint),
        .@"--metrics" => serve.metrics = try parseMetrics(text, complaint),
        .@"--probation" => serve.probation_s = try parseSeconds(name, text, complaint),
        .@"--silence-limit" => serve.silence_limit_s = try parseSeconds(name, text, complaint),
        .@"--write-cache",
        .@"--write-cache-size",
        .@"--write-cache-full",
        .@"--write-cache-of-another-version",
        => try setWriteCache(&serve.write_cache, option, text, complaint),
        .@"--boot-profile" => serve.boot_profile = try parseSwitch(name, text, complaint),
        .@"--ca-file", .@"--proxy" => try setDialed(serve, option, text, complaint),
        .@"--import-from" => try setDialed(serve, option, text, complaint),
        .@"--json", .@"--clear", .@"--insecure-uplink" => unreachable,
        .@"--router-advertisement", .@"--no-router-advertisement" => unreachable,
    }
}

/// Of the connections that this edge opens itself.
fn setDialed(
    serve: *Serve,
    option: ServeOption,
    text: []const u8,
    complaint: *Complaint,
) Error!void {
    const Sources = core.uplink.ImportUrl.Sources;
    switch (option) {
        .@"--ca-file" => serve.uplink.ca_file = text,
        .@"--proxy" => serve.uplink.proxy = text,
        .@"--import-from" => serve.import_sources = Sources.parse(text) catch return complaint.set(
            "--import-from is a list of up to {d} of public, networks, addresses and names, such as public,10.1.0.0/16,.lab.example, or none; not '{s}'.",
            .{ Sources.sources_max, text },
        ),
        else => unreachable,
    }
}

fn parseSwitch(name: []const u8, text: []const u8, complaint: *Complaint) Error!bool {
    if (std.mem.eql(u8, text, "on")) return true;
    if (std.mem.eql(u8, text, "off")) return false;
    return complaint.set("{s} is on or off, not '{s}'.", .{ name, text });
}

fn setWriteCache(
    cache: *agent.write_caches.CacheSettings,
    option: ServeOption,
    text: []const u8,
    complaint: *Complaint,
) Error!void {
    const name = @tagName(option);
    switch (option) {
        .@"--write-cache" => cache.class = std.meta.stringToEnum(
            @TypeOf(cache.class),
            text,
        ) orelse
            return complaint.set(
                "--write-cache is device_ram, device_ram_overflow, device_ram_local_disk, edge, edge_persistent or private, not '{s}'.",
                .{text},
            ),
        .@"--write-cache-size" => cache.limit_bytes = try parseSize(name, text, complaint),
        .@"--write-cache-full" => cache.full = std.meta.stringToEnum(
            @TypeOf(cache.full),
            text,
        ) orelse
            return complaint.set("--write-cache-full is stop or read_only, not '{s}'.", .{text}),
        .@"--write-cache-of-another-version" => cache.of_another_version =
            std.meta.stringToEnum(@TypeOf(cache.of_another_version), text) orelse
            return complaint.set(
                "--write-cache-of-another-version is refuse or discard, not '{s}'.",
                .{text},
            ),
        else => unreachable,
    }
}

/// A port alone listens on the loopback address, so that nobody else on the network can read it.
fn parseMetrics(text: []const u8, complaint: *Complaint) Error!base.Endpoint {
    if (std.mem.findScalar(u8, text, ':') == null)
        return .{ .ip = .init(127, 0, 0, 1), .port = try parsePort("--metrics", text, complaint) };
    return base.Endpoint.parse(text) catch
        complaint.set("--metrics is PORT, for this machine alone, or IP:PORT, not '{s}'.", .{text});
}

fn checkServe(serve: *const Serve, complaint: *Complaint) Error!void {
    try checkListens(serve.listens.items, complaint);
    if (serve.version != null and (serve.vdisk != null or serve.store == null))
        return complaint.set("--version ID goes with --store DIR, and not with --vdisk.", .{});
    if (!serve.isAlone() and serve.data == null)
        return complaint.set(
            "serve needs --vdisk FILE to work alone, or --data DIR of an enrolled edge.",
            .{},
        );
    if (serve.vdisk == null and
        (serve.kernel != null or serve.initrd != null or serve.cmdline.len > 0))
        return complaint.set("--kernel, --initrd and --cmdline go with --vdisk.", .{});
    if (!serve.isAlone() and serve.capture != null)
        return complaint.set(
            "--capture goes with --vdisk; an enrolled edge sends captures to the control plane.",
            .{},
        );
    try checkWriteCache(serve, complaint);
    if (serve.isAlone() and !std.meta.eql(serve.uplink, .{})) return complaint.set(
        "--insecure-uplink, --ca-file and --proxy go with --data of an enrolled edge.",
        .{},
    );
    if (serve.isAlone() and serve.power_hook != null)
        return complaint.set(
            "--power-hook goes with --data of an enrolled edge: schedules come from the control plane.",
            .{},
        );
    if (serve.power_hook) |path| if (!std.fs.path.isAbsolute(path))
        return complaint.set(
            "--power-hook is the absolute path of a program, beginning with /, not '{s}'.",
            .{path},
        );
    if (serve.data == null and serve.report_log_size != core.uplink.report_log.size_max_default)
        return complaint.set(
            "--report-log goes with --data of an enrolled edge: no other edge sends reports.",
            .{},
        );
    if (serve.kernel == null and (serve.initrd != null or serve.cmdline.len > 0))
        return complaint.set("--initrd and --cmdline go with --kernel.", .{});
    if (!core.boot.assignment.isCommandLine(serve.cmdline))
        return complaint.set(
            "--cmdline is one line of at most 1024 printable ASCII characters, without ${s}, the words ||, && and ;, and words that begin with #.",
            .{"{"},
        );
}

fn checkListens(listens: []const base.Ip4, complaint: *Complaint) Error!void {
    if (listens.len == 0)
        return complaint.set(
            "serve needs --listen IP, the address of this machine that devices reach.",
            .{},
        );
    if (listens.len > core.dhcp.network.links_max)
        return complaint.set(
            "--listen is given more than {d} times.",
            .{core.dhcp.network.links_max},
        );
    for (listens, 0..) |listen, index| {
        if (!listen.isUnicast())
            return complaint.set("--listen needs one address of this machine, not {f}.", .{listen});
        for (listens[0..index]) |earlier| if (earlier.eql(listen))
            return complaint.set("--listen {f} is given twice.", .{listen});
    }
}

fn checkWriteCache(serve: *const Serve, complaint: *Complaint) Error!void {
    const has_cache = serve.write_cache.class != .device_ram;
    const is_at_the_edge = serve.write_cache.class.isAtTheEdge();
    if (!serve.isAlone() and has_cache)
        return complaint.set(
            "--write-cache goes with --vdisk; an enrolled edge gets it from the control plane.",
            .{},
        );
    if (is_at_the_edge and serve.store == null and serve.data == null)
        return complaint.set(
            "--write-cache {t} needs --store DIR, where the writes of devices are kept.",
            .{serve.write_cache.class},
        );
    if (!has_cache and serve.write_cache.limit_bytes != null)
        return complaint.set(
            "--write-cache-size goes with a --write-cache other than device_ram.",
            .{},
        );
    const stays = serve.write_cache.class == .edge_persistent or
        serve.write_cache.class == .private;
    if (stays and serve.data == null)
        return complaint.set(
            "--write-cache {t} needs --data DIR, so that devices continue after a restart of this edge.",
            .{serve.write_cache.class},
        );
}

fn parsePool(text: []const u8, complaint: *Complaint) Error!Serve.Pool {
    const first, const last = std.mem.cutScalar(u8, text, '-') orelse
        return complaint.set(
            "--dhcp-pool is FIRST-LAST, for example 10.0.0.100-10.0.0.199, not '{s}'.",
            .{text},
        );
    return .{
        .first = base.Ip4.parse(first) catch
            return complaint.set("--dhcp-pool: '{s}' is not an IPv4 address.", .{first}),
        .last = base.Ip4.parse(last) catch
            return complaint.set("--dhcp-pool: '{s}' is not an IPv4 address.", .{last}),
    };
}

fn parseShards(text: []const u8, complaint: *Complaint) Error!u16 {
    const most = host.stream_shards.shards_max;
    const shards = std.fmt.parseInt(u16, text, 10) catch 0;
    if (shards < 1 or shards > most) return complaint.set(
        "--stream-shards is a number from 1 to {d}, not '{s}'.",
        .{ most, text },
    );
    return shards;
}

fn setStream(
    serve: *Serve,
    option: ServeOption,
    text: []const u8,
    complaint: *Complaint,
) Error!void {
    switch (option) {
        .@"--stream-shards" => serve.stream_shards = try parseShards(text, complaint),
        .@"--packed-memory" => serve.packed_memory =
            try parsePacked(@tagName(option), text, complaint),
        else => unreachable,
    }
}

fn parsePacked(name: []const u8, text: []const u8, complaint: *Complaint) Error!u64 {
    if (std.mem.eql(u8, text, "0")) return 0;
    const size = try parseSize(name, text, complaint);
    if (size < host.AnswerPieces.size_min)
        return complaint.set("{s} is 0, or at least 1M, not '{s}'.", .{ name, text });
    return size;
}

pub fn parseReserve(name: []const u8, text: []const u8, complaint: *Complaint) Error!u64 {
    return if (std.mem.eql(u8, text, "0")) 0 else parseSize(name, text, complaint);
}

fn parseDevices(text: []const u8, complaint: *Complaint) Error!u32 {
    const devices = std.fmt.parseInt(u32, text, 10) catch 0;
    if (devices < TableSizes.devices_least or devices > TableSizes.devices_most)
        return complaint.set("--devices-max is a number from {d} to {d}, not '{s}'.", .{
            TableSizes.devices_least, TableSizes.devices_most, text,
        });
    return devices;
}

fn parsePort(name: []const u8, text: []const u8, complaint: *Complaint) Error!u16 {
    const port = std.fmt.parseInt(u16, text, 10) catch 0;
    if (port == 0)
        return complaint.set("{s} is a port from 1 to 65535, not '{s}'.", .{ name, text });
    return port;
}

fn parseSeconds(name: []const u8, text: []const u8, complaint: *Complaint) Error!u32 {
    const seconds = std.fmt.parseInt(u32, text, 10) catch 0;
    if (seconds == 0 or seconds > 3600) return complaint.set(
        "{s} is a number of seconds from 1 to 3600, not '{s}'.",
        .{ name, text },
    );
    return seconds;
}

fn parseSize(name: []const u8, text: []const u8, complaint: *Complaint) Error!u64 {
    const wrong = "{s} is a size from 64K to 64G, for example 512M, not '{s}'.";
    if (text.len < 2) return complaint.set(wrong, .{ name, text });
    const shift: u6 = switch (text[text.len - 1]) {
        'K' => 10,
        'M' => 20,
        'G' => 30,
        else => return complaint.set(wrong, .{ name, text }),
    };
    const size = @as(u64, std.fmt.parseInt(u32, text[0 .. text.len - 1], 10) catch 0) << shift;
    if (size < 64 << 10 or size > 64 << 30) return complaint.set(wrong, .{ name, text });
    return size;
}

pub const Leases = struct { data: []const u8, json: bool };
const LeasesOption = enum { @"--data", @"--json" };

pub fn parseLeases(rest: []const [:0]const u8, complaint: *Complaint) Error!Leases {
    var arguments: Arguments = .{ .command = "leases", .rest = rest, .complaint = complaint };
    var data: ?[]const u8 = null;
    var json = false;
    while (try arguments.next()) |argument| {
        const option = std.meta.stringToEnum(LeasesOption, argument.name) orelse
            return arguments.noOption(argument.name);
        switch (option) {
            .@"--json" => json = true,
            .@"--data" => data = try arguments.value(argument.name, argument.value),
        }
    }
    return .{
        .data = data orelse
            return complaint.set("leases needs --data DIR, where an edge keeps its state.", .{}),
        .json = json,
    };
}
