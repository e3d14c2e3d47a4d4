//! `bootfarm-target attach`: opens the stream, gives the kernel its disk, and leaves two processes
//! behind that serve it as long as the machine runs: one holds the kernel's disk and starts the
//! other, which runs the stream. It stays in the foreground until the disk is there, so that an
//! init script can wait.

const std = @import("std");
const base = @import("base");
const linux = std.os.linux;
const core = @import("core");
const stream = @import("wire").stream;
const sys = @import("host").sys;
const say = @import("console.zig").say;
const control = @import("control_socket.zig");
const kernel_device = @import("kernel_device.zig");
const machine = @import("machine/machine.zig");
const NetworkCard = @import("machine/network_card.zig");
const protection = @import("protection.zig");
const sys_time = @import("sys_time.zig");
const EdgeSocket = @import("edge_socket.zig");
const DeviceKey = @import("device_key.zig");
const DiskKeeper = @import("disk_keeper.zig");
const RamCache = @import("ram_cache.zig");
const LocalCache = @import("local_disk/local_cache.zig");
const local_setup = @import("local_disk/local_setup.zig");
const LocalWorker = @import("local_disk/local_worker.zig");
const SharedMemory = @import("shared_memory.zig").SharedMemory;
const ServedDisk = @import("served_disk.zig");
const Silence = @import("silence.zig");
const ahead_cache = @import("ahead_cache.zig");
const http_report = @import("http_report.zig");
const system_end = @import("system_end.zig");
const TargetOptions = core.target.options.TargetOptions;
const LostDisk = core.target.LostDisk;
const unpack_rate = @import("unpack_rate.zig");

/// The client's tables of reads and writes, one for each slot of the queue, and a packed answer.
var reads_memory: [(112 << 10) + core.stream.Client.read_size_max]u8 align(64) = undefined;
const socket_retry_us = 1 * std.time.us_per_s;
/// After this silence the edge is told by HTTP that its stream does not answer.
const no_stream_us = 20 * std.time.us_per_s;

/// `words` as on the kernel's command line. Returns the exit code; the disk is there if it is 0.
pub fn attach(words: []const u8, first_argument: [*:0]const u8) u8 {
    const served = serve(words, first_argument, kernel_device.start) orelse return 1;
    kernel_device.readFirstBlock() catch |reason| return failDevice(words, reason);
    noteDevice();
    say("{s} is the disk of boot {f}, {d} MiB from {f}", .{
        kernel_device.path(), served.boot_id, served.disk_size >> 20, served.edge,
    });
    return 0;
}

/// For the scripts of the initramfs, and of the system.
fn noteDevice() void {
    const flags: linux.O = .{ .ACCMODE = .WRONLY, .CREAT = true, .TRUNC = true, .CLOEXEC = true };
    const fd = sys.check(linux.open("/run/bootfarm/disk", flags, 0o644)) catch return;
    defer sys.close(@intCast(fd));
    sys.writeAll(@intCast(fd), std.fs.path.basename(kernel_device.path())) catch {};
    sys.writeAll(@intCast(fd), "\n") catch {};
}

pub const AttachedDisk = struct { boot_id: base.Uuid, disk_size: u64, edge: base.Endpoint };

/// Starts the block device of this size, and returns our end of its socket.
pub const DeviceError = kernel_device.Error;
pub const StartDevice = fn (disk_size: u64, takes_writes: bool) DeviceError!i32;

/// Opens the session and leaves the two processes behind that serve the device. Null after an
/// error, which was printed and reported.
pub fn serve(
    words: []const u8,
    first_argument: [*:0]const u8,
    start_device: *const StartDevice,
) ?AttachedDisk {
    const options = TargetOptions.parse(words) catch |reason| {
        _ = fail(words, "bad_cmdline", "{s}", .{TargetOptions.explain(reason)});
        return null;
    };
    // The system moves /proc away from the root that this process keeps.
    const proc: system_end.ProcFolder = .open();
    var client = makeClient(&options);
    var edge: EdgeSocket = .init(options.edge);
    if (!openSession(&client, &edge, options, words)) return null;
    const card: NetworkCard = .open(edge.fd);
    client.identity.card = card.read(edge.fd);
    const memory = SharedMemory.init() catch {
        _ = fail(words, "no_disk", "no memory for the reads of the disk", .{});
        return null;
    };
    const disk_size = client.session.?.disk_size;
    // The edge's own write caches take precedence.
    const order = if (client.session.?.write_cache == .device_ram) options.local_disk else null;
    const takes_writes = client.session.?.write_cache != .device_ram or order != null;
    var ram: ?RamCache = null;
    if (client.session.?.write_cache == .device_ram_overflow or order != null)
        ram = RamCache.init(disk_size, RamCache.limitOf(words, RamCache.memoryBytes())) catch {
            _ = fail(words, "no_disk", "no memory for the writes of this machine", .{});
            return null;
        };
    var local: ?LocalCache = null;
    if (order) |known| switch (local_setup.make(known, &ram.?)) {
        .cache => |cache| local = cache,
        .refusal => |refusal| {
            refusal.sayAdvice();
            _ = fail(words, "cache_disk", "{f}", .{&refusal});
            return null;
        },
    };
    kernel_device.index = options.disk_index;
    const kernel_fd = start_device(disk_size, takes_writes) catch |reason| {
        _ = failDevice(words, reason);
        return null;
    };
    const pid = sys.check(linux.fork()) catch {
        _ = fail(words, "no_disk", "no process could be started to serve the disk", .{});
        return null;
    };
    if (pid == 0) {
        protection.markAsStorage(first_argument);
        var setup: StreamSetup = .{
            .client = &client,
            .edge = &edge,
            .identity = identityOf(&client),
            .memory = memory,
            .ram = if (ram) |*kept| kept else null,
            .local = if (local) |*kept| kept else null,
            .takes_writes = takes_writes,
            .proc = proc,
            .card = card,
            .words = words,
            .options = &options,
            .is_own_machine = system_end.isMachineOf(options.boot_id),
        };
        keep(&setup, kernel_fd, 0);
    }
    sys.close(kernel_fd);
    return .{ .boot_id = options.boot_id, .disk_size = disk_size, .edge = options.edge };
}

fn makeClient(options: *const TargetOptions) core.stream.Client {
    var allocator: std.heap.FixedBufferAllocator = .init(&reads_memory);
    return core.stream.Client.init(allocator.allocator(), .{
        .reads_max = core.target.nbd_queue.slots_max + core.profile.ReadAhead.client_places,
        .writes_max = core.target.nbd_queue.slots_max,
        .codecs = unpack_rate.codecsOf(options.codec),
        .request_bytes_max = options.read_limit orelse core.stream.Client.read_size_max,
        .rtt_probe_us = core.stream.Client.rtt_probe_us_default,
    }) catch @panic("reads_memory is too small for the client's reads");
}

fn identityOf(client: *const core.stream.Client) core.stream.Client.Identity {
    var identity = client.identity;
    identity.session = client.session;
    return identity;
}

/// Sends HELLO until the edge has answered, however long that takes; returns false if it refuses
/// this boot.
fn openSession(
    client: *core.stream.Client,
    edge: *EdgeSocket,
    options: TargetOptions,
    words: []const u8,
) bool {
    var seed: [32]u8 = undefined;
    sys.random(&seed);
    edge.open();
    client.options.packet_size_max =
        @min(edge.packetSizeMax(), options.packet_size_max orelse std.math.maxInt(u16));
    if (options.clear) client.options.ciphers = core.stream.seal.withClear();
    var key = DeviceKey.make();
    defer if (key) |*made| made.end();
    client.start(
        sys.monotonicUs(),
        .{
            .boot_id = options.boot_id,
            .token = options.token,
            .nonce_seed = seed,
            .edge = options.edge,
            .device_key = if (key) |*made| made.public_key else null,
            .machine = machine.read(edge.fd),
        },
    );
    var silence: Silence = .{};
    var tell_at_us = sys.monotonicUs() + no_stream_us;
    while (true) {
        const now_us = sys.monotonicUs();
        while (edge.receive()) |received| {
            var packets = received;
            silence.heard(now_us);
            while (packets.next()) |packet| client.receive(now_us, packet);
        }
        while (client.nextEvent()) |event| switch (event) {
            .established => return true,
            .refused => |code| {
                explainRefusal(code, options, words);
                return false;
            },
            // Nothing was read or reported yet.
            .version_changed,
            .cache_lost,
            .read_done,
            .read_failed,
            .write_ended,
            .ready_acknowledged,
            .account_acknowledged,
            => unreachable,
            .refused_elsewhere => unreachable,
            .order, .report_acknowledged => unreachable,
            .sign => |digest| client.sign(sys.monotonicUs(), key.?.sign(&digest)),
        };
        var out: [stream.sealed_request_size_max]u8 = undefined;
        while (client.transmit(now_us, &out)) |packet| edge.send(packet);
        silence.watch(client, edge, now_us);
        if (now_us >= tell_at_us) {
            tell_at_us = std.math.maxInt(u64);
            reportNoStream(words, options);
        }
        if (edge.fd < 0) edge.open();
        waitForPacket(
            edge,
            (client.deadline() orelse now_us + socket_retry_us) -| sys.monotonicUs(),
        );
    }
}

fn waitForPacket(edge: *const EdgeSocket, limit_us: u64) void {
    var timeout = sys_time.timespecOf(@min(limit_us, socket_retry_us));
    var polled = [_]linux.pollfd{.{ .fd = edge.fd, .events = linux.POLL.IN, .revents = 0 }};
    _ = linux.ppoll(&polled, polled.len, &timeout, null);
}

/// In a separate process, since retransmission continues meanwhile.
fn reportNoStream(words: []const u8, options: TargetOptions) void {
    const pid = sys.check(linux.fork()) catch return;
    if (pid != 0) return;
    var buffer: [http_report.body_size_max]u8 = undefined;
    const body = std.mem.print(
        &buffer,
        "no_stream the stream at {f} does not answer",
        .{options.edge},
    ) catch
        unreachable; // An endpoint is short.
    const address = http_report.Address.find(words) orelse linux.exit_group(1);
    if (http_report.post(address, .failed, body))
        say("reported to the edge over HTTP that its stream does not answer", .{});
    linux.exit_group(0);
}

/// One line on the console, and to the edge by HTTP; returns the exit code.
fn fail(words: []const u8, code: []const u8, comptime format: []const u8, arguments: anytype) u8 {
    say(format, arguments);
    var buffer: [http_report.body_size_max]u8 = undefined;
    var writer: std.Io.Writer = .fixed(&buffer);
    writer.print("{s} " ++ format, .{code} ++ arguments) catch {}; // What does not fit is cut.
    tell(words, writer.buffered());
    return 1;
}

/// `body` is a code, a space and a sentence.
pub fn tell(words: []const u8, body: []const u8) void {
    const address = http_report.Address.find(words) orelse return;
    if (!http_report.post(address, .failed, body)) say("the report did not reach the edge", .{});
}

/// The data that the process of the kernel's disk passes to each process of the stream.
const StreamSetup = struct {
    client: *core.stream.Client,
    edge: *EdgeSocket,
    identity: core.stream.Client.Identity,
    memory: *SharedMemory,
    ram: ?*RamCache,
    local: ?*LocalCache,
    takes_writes: bool,
    proc: system_end.ProcFolder,
    card: NetworkCard,
    words: []const u8,
    options: *const TargetOptions,
    /// The machine runs from this disk. Otherwise it goes on when the disk is lost.
    is_own_machine: bool,

    fn lostPolicy(setup: *const StreamSetup) LostDisk.Policy {
        return if (setup.is_own_machine) setup.options.lost else .wait;
    }
};

/// The process that stays. It ends only with the device or the machine. `serial` is that of its
/// first process of the stream.
fn keep(handover: *StreamSetup, kernel_fd: i32, serial: u32) noreturn {
    if (!protection.protect())
        say("memory could not be locked; the disk may hang when memory is short", .{});
    protection.awaitChildren();
    const session = handover.identity.session.?;
    var keeper: DiskKeeper = .{
        .kernel = .init(
            kernel_fd,
            session.disk_size,
            handover.takes_writes,
            &handover.memory.buffers,
        ),
        .stream_main = streamMain,
        .context = handover,
        .handed_over_fd = handover.edge.fd,
        .serial = serial,
    };
    keeper.run() catch |reason| switch (reason) {
        error.KernelGone => endWithoutDevice(handover, "the kernel closed it"),
    };
    unreachable; // It serves until then.
}

/// Nothing brings the device back: a machine that runs from it restarts.
fn endWithoutDevice(handover: *const StreamSetup, why: []const u8) noreturn {
    say("{s} is gone: {s}", .{ kernel_device.path(), why });
    switch (handover.lostPolicy()) {
        .wait => {},
        .restart_after_s => |delay_s| {
            say("the disk is lost for good; restarting this machine in {d} s", .{delay_s});
            const restart_at_us = sys.monotonicUs() + @as(u64, delay_s) * std.time.us_per_s;
            while (sys.monotonicUs() < restart_at_us) {
                const time = sys_time.timespecOf(restart_at_us -| sys.monotonicUs());
                _ = linux.nanosleep(&time, null);
            }
            system_end.askKernel(.restart);
        },
    }
    linux.exit_group(0);
}

/// The process of the kernel's disk was killed: this one, which has talked to the edge, takes its
/// place. The kernel sends its requests to the new socket, also those that were in progress.
fn takeOver(handover: *StreamSetup, disk: *ServedDisk) noreturn {
    // A device that was closed has told its process, which waits for the restart or has ended.
    if (!handover.is_own_machine) linux.exit_group(0);
    // A write that is carried out after the kernel has repeated it might undo a later one.
    if (disk.local) |local| local.finish();
    if (disk.server) |*server| server.close();
    if (disk.ahead) |*ahead| ahead_cache.giveBack(ahead);
    sys.close(disk.link_fd);
    sys.close(handover.edge.fd);
    handover.edge.fd = -1;
    const kernel_fd = kernel_device.restart() catch |reason|
        switch (reason) {
            error.NoDriver, error.InUse, error.NotPermitted, error.Failed => endWithoutDevice(
                handover,
                "it takes no other socket",
            ),
        };
    say("the process of {s} was killed; another one serves it", .{kernel_device.path()});
    keep(handover, kernel_fd, disk.serial + 1);
}

/// The process of the stream: the first one uses the session that `attach` opened; a later one
/// resumes the newest session, on whichever edge it is.
fn streamMain(context: *anyopaque, link_fd: i32, serial: u32) noreturn {
    const handover: *StreamSetup = @ptrCast(@alignCast(context));
    _ = protection.protect();
    if (serial > 0) {
        var identity = handover.identity;
        sys.random(&identity.nonce_seed);
        if (handover.memory.session.get()) |session| identity.session = session;
        handover.client.start(sys.monotonicUs(), identity);
        handover.edge.edge = handover.client.failover.current;
        const write_id = handover.memory.write_id.load(.seq_cst);
        if (write_id != 0) handover.client.writes.continueAfter(write_id);
        handover.edge.fd = -1;
        handover.edge.open();
    }
    const server = control.Server.init();
    if (server == null)
        say("no control socket: `bootfarm-target ready` will not reach this process", .{});
    var worker: LocalWorker = undefined;
    if (handover.local) |local| worker.start(local, &handover.memory.buffers) catch {
        say("no thread could be started for the local disk", .{});
        linux.exit_group(1);
    };
    var disk: ServedDisk = .{
        .client = handover.client,
        .edge = handover.edge,
        .memory = handover.memory,
        .ram = handover.ram,
        .local = if (handover.local != null) &worker else null,
        // It is of a local disk, which only counts if there is one.
        .full = if (handover.options.local_disk) |order| order.full else .stop,
        .lost_policy = handover.lostPolicy(),
        .link_fd = link_fd,
        .serial = serial,
        .server = server,
        .proc = handover.proc,
        .card = handover.card,
        .words = handover.words,
        // The read-ahead of an earlier process is lost, and most of the boot is over.
        .ahead = if (serial == 0) ahead_cache.take(
            handover.options.read_ahead,
            handover.client.session.?.profile_size,
        ) else null,
    };
    disk.run() catch |reason| switch (reason) {
        error.Gone => takeOver(handover, &disk),
    };
    unreachable; // It serves until then.
}

fn explainRefusal(code: stream.RefuseCode, options: TargetOptions, words: []const u8) void {
    switch (code) {
        .token_refused => {
            say(
                "the edge {f} refused the token of boot {f}: it was used before, or has expired; " ++
                    "restart the device",
                .{ options.edge, options.boot_id },
            );
            tell(words, "no_token the token was used before, or has expired");
        },
        .version_missing => {
            say("the edge {f} does not have the disk of boot {f}", .{
                options.edge, options.boot_id,
            });
            tell(words, "no_version the edge does not have the disk of this boot");
        },
        .identity_refused => {
            say(
                "the edge {f} does not open the disk of boot {f} to this machine's key, or it has " ++
                    "none; see the device's page in the dashboard",
                .{ options.edge, options.boot_id },
            );
            tell(words, "no_identity the edge does not know this machine's key");
        },
        .no_cipher => {
            say("the edge {f} does not serve this machine its disk in clear text", .{options.edge});
            tell(words, "no_cipher the edge does not serve its disks in clear text");
        },
        .cache_lost => {
            say("the edge {f} has lost the writes of this machine", .{options.edge});
            tell(words, "cache_lost the edge has lost the writes of this machine");
        },
        .cache_version => {
            say(
                "the writes of this machine at the edge {f} belong to another version of its disk",
                .{options.edge},
            );
            tell(words, "cache_other the writes of this machine belong to another version");
        },
        .cache_failed => {
            say("the edge {f} has no space for the writes of this machine", .{options.edge});
            tell(words, "cache_failed the edge has no space for the writes of this machine");
        },
        // The client keeps retransmitting, and no other edge was tried.
        .busy, .cache_elsewhere => unreachable,
    }
}

fn failDevice(words: []const u8, reason: kernel_device.Error) u8 {
    const path = kernel_device.path();
    return switch (reason) {
        error.NoDriver => fail(
            words,
            "no_nbd",
            "this kernel has no nbd driver, or it is not loaded " ++ "(modprobe nbd)",
            .{},
        ),
        error.InUse => fail(words, "no_disk", "{s} is in use already", .{path}),
        error.NotPermitted => fail(words, "no_disk", "only root can make {s}", .{path}),
        error.Failed => fail(words, "no_disk", "{s} could not be made (kernel error {d})", .{
            path, kernel_device.last_errno,
        }),
    };
}
