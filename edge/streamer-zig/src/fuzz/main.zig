//! The fuzzer: runs every parser of `wire`, and the state machines that face the network, on random
//! and damaged packets. Bounded, seeded, with a real exit code; a failed case can be run again
//! alone by its number.
//!
//!     zig build fuzz -- --seed N --cases N [--target NAME] [--case N] [--canary]

const std = @import("std");
const base = @import("base");
const fuzz_case = @import("case.zig");
const Case = fuzz_case.Case;
const Violation = fuzz_case.Violation;

const Target = struct {
    name: []const u8,
    /// Returns true if the parser accepted the packet, or the machine made progress.
    run: *const fn (case: *Case) Violation!bool,
    /// A case of a machine has many packets, so it runs this many times fewer cases.
    weight: u64 = 1,
};

const targets = [_]Target{
    .{ .name = "dhcp", .run = @import("dhcp_target.zig").parser },
    .{ .name = "tftp", .run = @import("tftp_target.zig").parser },
    .{ .name = "ethernet", .run = @import("ethernet_target.zig").parser },
    .{ .name = "wake-on-lan", .run = @import("wake_on_lan_target.zig").parser },
    .{ .name = "router-discovery", .run = @import("router_discovery_target.zig").parser },
    .{ .name = "peer", .run = @import("peer_target.zig").parser },
    .{ .name = "peer-transfer", .run = @import("peer_transfer_target.zig").parser },
    .{
        .name = "peer-transfer-session",
        .run = @import("peer_transfer_target.zig").session,
        .weight = 16,
    },
    .{ .name = "stream", .run = @import("stream_target.zig").parser },
    .{ .name = "stream-ticket", .run = @import("stream_target.zig").ticketBody },
    .{ .name = "http", .run = @import("http_target.zig").parser },
    .{ .name = "media-query", .run = @import("media_query_target.zig").parser },
    .{ .name = "tpm", .run = @import("tpm_target.zig").parser },
    .{ .name = "nbd", .run = @import("device_target.zig").nbdParser },
    .{ .name = "nbd-netlink", .run = @import("device_target.zig").netlinkParser },
    .{ .name = "target-options", .run = @import("device_target.zig").optionsParser },
    .{ .name = "kernel-image", .run = @import("loader_files_target.zig").kernel, .weight = 8 },
    .{ .name = "initramfs-mark", .run = @import("loader_files_target.zig").mark },
    .{ .name = "boot-program", .run = @import("boot_program_target.zig").program, .weight = 4 },
    .{ .name = "boot-program-plain", .run = @import("boot_program_target.zig").plain },
    .{ .name = "signatures", .run = @import("boot_program_target.zig").signatures, .weight = 4 },
    .{ .name = "partition-table", .run = @import("disk_target.zig").partitions, .weight = 4 },
    .{ .name = "marked-partition", .run = @import("disk_target.zig").markedPartition, .weight = 8 },
    .{ .name = "super-blocks", .run = @import("disk_target.zig").superBlocks, .weight = 4 },
    .{
        .name = "image-partitions",
        .run = @import("image_target.zig").partitionTables,
        .weight = 4,
    },
    .{ .name = "image-lvm", .run = @import("image_target.zig").logicalVolumes, .weight = 16 },
    .{
        .name = "image-file-systems",
        .run = @import("image_target.zig").fileSystems,
        .weight = 64,
    },
    .{ .name = "image-file-maps", .run = @import("image_target.zig").fileMaps, .weight = 512 },
    .{ .name = "image-disks", .run = @import("image_target.zig").disks, .weight = 16 },
    .{ .name = "image-vhd", .run = @import("container_target.zig").vhd, .weight = 16 },
    .{ .name = "image-vhdx", .run = @import("container_target.zig").vhdxFile, .weight = 64 },
    .{ .name = "image-qcow2", .run = @import("container_target.zig").qcow2, .weight = 16 },
    .{ .name = "image-vmdk", .run = @import("container_target.zig").vmdk, .weight = 16 },
    .{ .name = "image-oci", .run = @import("oci_target.zig").archives, .weight = 16 },
    .{ .name = "difference", .run = @import("difference_target.zig").file, .weight = 4 },
    .{ .name = "layer-copy", .run = @import("layer_copy_target.zig").list, .weight = 4 },
    .{ .name = "pvs-manifest", .run = @import("pvs_target.zig").manifest },
    .{ .name = "image-loader-texts", .run = @import("image_target.zig").loaderTexts },
    .{ .name = "packed-answer", .run = @import("codec_target.zig").packedAnswer, .weight = 8 },
    .{ .name = "store-unit", .run = @import("unit_target.zig").unpacking, .weight = 8 },
    .{ .name = "lz4", .run = @import("codec_target.zig").lz4Block, .weight = 8 },
    .{ .name = "desired-state", .run = @import("desired_state_target.zig").reader, .weight = 64 },
    .{ .name = "state-delta", .run = @import("desired_state_target.zig").delta, .weight = 64 },
    .{ .name = "signed-time", .run = @import("update_target.zig").time, .weight = 64 },
    .{ .name = "update-client", .run = @import("update_target.zig").client, .weight = 32 },
    .{ .name = "dhcp-service", .run = @import("dhcp_target.zig").service, .weight = 32 },
    .{ .name = "tftp-server", .run = @import("tftp_target.zig").server, .weight = 32 },
    .{ .name = "stream-server", .run = @import("stream_server_target.zig").server, .weight = 32 },
    .{ .name = "stream-client", .run = @import("stream_client_target.zig").client, .weight = 64 },
    .{ .name = "nbd-queue", .run = @import("device_target.zig").queue, .weight = 512 },
};

const Options = struct {
    seed: u64 = 1,
    cases: u64 = 200_000,
    target: ?[]const u8 = null,
    /// Runs only this case.
    case: ?u64 = null,
    is_canary: bool = false,
};

const usage =
    \\usage: fuzz [--seed N] [--cases N] [--target NAME] [--case N] [--canary]
    \\  --seed N       the random numbers; the same seed gives the same cases (1)
    \\  --cases N      cases for each parser (200000); machines run fewer, of many packets each
    \\  --target NAME  only this target
    \\  --case N       only this case, to see a failure again
    \\  --canary       with a bug planted in the TFTP parser: must end with exit code 1
    \\
;

/// The current case, for the panic handler.
var running: struct { target: []const u8 = "", seed: u64 = 0, case: u64 = 0 } = .{};

pub const panic = std.debug.FullPanic(panicWithCase);

fn panicWithCase(message: []const u8, first_address: ?usize) noreturn {
    printReplay("panic");
    std.debug.defaultPanic(message, first_address);
}

pub fn main(init: std.process.Init) u8 {
    const arguments = init.minimal.args.toSlice(init.arena.allocator()) catch return 2;
    const options = parseArguments(arguments[1..]) catch {
        std.debug.print("{s}", .{usage});
        return 2;
    };
    var is_target_known = false;
    for (targets) |target| {
        if (options.target) |name| if (!std.mem.eql(u8, name, target.name)) continue;
        is_target_known = true;
        runTarget(&target, &options) catch return 1;
    }
    if (is_target_known) return 0;
    std.debug.print("no target {s}; there are:", .{options.target.?});
    for (targets) |target| std.debug.print(" {s}", .{target.name});
    std.debug.print("\n", .{});
    return 2;
}

fn parseArguments(arguments: []const [:0]const u8) error{Usage}!Options {
    var options: Options = .{};
    var index: usize = 0;
    while (index < arguments.len) : (index += 1) {
        const name = arguments[index];
        if (std.mem.eql(u8, name, "--canary")) {
            options.is_canary = true;
            continue;
        }
        index += 1;
        if (index == arguments.len) return error.Usage;
        const value = arguments[index];
        if (std.mem.eql(u8, name, "--target")) {
            options.target = value;
            continue;
        }
        const number = std.fmt.parseInt(u64, value, 10) catch return error.Usage;
        if (std.mem.eql(u8, name, "--seed")) {
            options.seed = number;
        } else if (std.mem.eql(u8, name, "--cases")) {
            options.cases = number;
        } else if (std.mem.eql(u8, name, "--case")) {
            options.case = number;
        } else return error.Usage;
    }
    return options;
}

var memory: [1 << 20]u8 = undefined;

fn runTarget(target: *const Target, options: *const Options) Violation!void {
    const count = if (options.case == null) @max(1, options.cases / target.weight) else 1;
    const first = options.case orelse 0;
    running = .{ .target = target.name, .seed = options.seed };
    var accepted: u64 = 0;
    for (first..first + count) |number| {
        running.case = number;
        var fixed: std.heap.FixedBufferAllocator = .init(&memory);
        var case: Case = .{
            .prng = .init(caseSeed(target.name, options.seed, number)),
            .gpa = fixed.allocator(),
            .is_canary = options.is_canary,
        };
        const is_accepted = target.run(&case) catch |violation| {
            printReplay("failed");
            return violation;
        };
        accepted += @intFromBool(is_accepted);
    }
    std.debug.print("fuzz {s}: {d} cases, {d} accepted, seed {d}: ok\n", .{
        target.name, count, accepted, options.seed,
    });
    // A generator whose packets are all refused would test nothing.
    if (count >= 1000) try fuzz_case.expect(accepted * 50 > count, "some cases get through");
}

/// Each case has its own random numbers, whatever ran before it.
fn caseSeed(target: []const u8, seed: u64, number: u64) u64 {
    var hash: std.hash.Wyhash = .init(seed);
    hash.update(target);
    hash.update(std.mem.asBytes(&std.mem.nativeToLittle(u64, number)));
    return hash.final();
}

fn printReplay(what: []const u8) void {
    std.debug.print("fuzz {s}: {s}; again: ", .{ running.target, what });
    std.debug.print("zig build fuzz -- --target {s} --seed {d} --case {d}\n", .{
        running.target, running.seed, running.case,
    });
}
