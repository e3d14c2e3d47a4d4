//! Builds the site agent. Each folder of src/ is a module of its own: what is not in its import
//! list cannot be imported, so the compiler keeps the order base <- wire <- core <- store <- host
//! <- main and core, store <- sim (never host).

const std = @import("std");
const builtin = @import("builtin");

comptime {
    if (!std.mem.eql(u8, builtin.zig_version_string, "0.17.0"))
        @compileError("needs Zig 0.17.0, found " ++ builtin.zig_version_string ++
            "; `npm start` and `npm test` fetch it into .toolchain/");
}

const Modules = struct {
    base: *std.Build.Module,
    wire: *std.Build.Module,
    core: *std.Build.Module,
    store: *std.Build.Module,
    host: *std.Build.Module,
    initramfs: *std.Build.Module,
    prepare: *std.Build.Module,
    media: *std.Build.Module,
    image: *std.Build.Module,
    sim: *std.Build.Module,
};

const Import = std.Build.Module.Import;

fn module(
    b: *std.Build,
    path: []const u8,
    target: std.Build.ResolvedTarget,
    optimize: std.lang.Optimize,
    imports: []const Import,
) *std.Build.Module {
    return b.createModule(.{
        .root_source_file = b.path(path),
        .target = target,
        .optimize = optimize,
        .imports = imports,
    });
}

fn graph(
    b: *std.Build,
    target: std.Build.ResolvedTarget,
    optimize: std.lang.Optimize,
    options: *std.Build.Step.Options,
) Modules {
    const base = module(b, "src/base/base.zig", target, optimize, &.{});
    base.addObject(aegisObject(b, target.result.cpu.arch));
    base.addObject(cryptoObject(b, target));
    const base_import: Import = .{ .name = "base", .module = base };
    const wire = module(b, "src/wire/wire.zig", target, optimize, &.{base_import});
    const wire_import: Import = .{ .name = "wire", .module = wire };
    const core = module(b, "src/core/core.zig", target, optimize, &.{ base_import, wire_import });
    const core_import: Import = .{ .name = "core", .module = core };
    const below_store = [_]Import{ base_import, wire_import, core_import };
    const store = storeModule(b, target, optimize, &below_store, .product);
    const store_import: Import = .{ .name = "store", .module = store };
    const lower = [_]Import{ base_import, wire_import, core_import, store_import };
    const host = module(b, "src/host/host.zig", target, optimize, &lower);
    const initramfs = module(b, "src/initramfs/initramfs.zig", target, optimize, &.{ base_import, wire_import });
    const prepare = module(b, "src/prepare/prepare.zig", target, optimize, &.{
        base_import,
        .{ .name = "host", .module = host },
        .{ .name = "initramfs", .module = initramfs },
    });
    const media = module(b, "src/media/media.zig", target, optimize, &.{base_import});
    const image = module(b, "src/image/image.zig", target, optimize, &.{ base_import, wire_import, store_import });
    const sim = module(b, "src/sim/sim.zig", target, optimize, &.{
        base_import,
        wire_import,
        core_import,
        .{ .name = "store", .module = storeModule(b, target, optimize, &below_store, .simulated) },
    });
    base.addOptions("config", options);
    const proto = "../../packages/proto/";
    embed(b, core, "boot_phases_json", proto ++ "boot-phases.json");
    embed(b, core, "uplink_vectors_json", proto ++ "vectors/uplink-v1.json");
    embed(b, core, "releases_vectors_json", proto ++ "vectors/releases-v1.json");
    embed(b, core, "peers_vectors_json", proto ++ "vectors/peers-v1.json");
    embed(b, wire, "peers_vectors_json", proto ++ "vectors/peers-v1.json");
    embed(b, wire, "stream_vectors_json", proto ++ "vectors/stream-v2.json");
    embed(b, wire, "stream_profiles_json", proto ++ "vectors/stream-profiles-v2.json");
    embed(b, wire, "dhcp_vectors_json", proto ++ "vectors/dhcp-v1.json");
    embed(b, wire, "tftp_vectors_json", proto ++ "vectors/tftp-v1.json");
    embed(b, core, "tftp_vectors_json", proto ++ "vectors/tftp-v1.json");
    embed(b, core, "stream_sealed_vectors_json", proto ++ "vectors/stream-sealed-v2.json");
    embed(b, core, "stream_tickets_json", proto ++ "vectors/stream-tickets-v1.json");
    embed(b, core, "boot_trace_csv", "../../e2e/traces/boot-trace-bios.csv");
    return .{
        .base = base,
        .wire = wire,
        .core = core,
        .store = store,
        .host = host,
        .initramfs = initramfs,
        .prepare = prepare,
        .media = media,
        .image = image,
        .sim = sim,
    };
}

/// The simulation has a store of its own, into which it can plant bugs; no other program is compiled with them.
fn storeModule(
    b: *std.Build,
    target: std.Build.ResolvedTarget,
    optimize: std.lang.Optimize,
    imports: []const Import,
    of: enum { product, simulated },
) *std.Build.Module {
    const options = b.addOptions();
    options.addOption(bool, "is_simulated", of == .simulated);
    const store = module(b, "src/store/store.zig", target, optimize, imports);
    store.addOptions("store_options", options);
    return store;
}

/// Makes a file outside the module's folder readable by `@embedFile(name)` and nothing else.
fn embed(b: *std.Build, in: *std.Build.Module, name: []const u8, path: []const u8) void {
    in.addAnonymousImport(name, .{ .root_source_file = b.path(path) });
}

fn targetOf(b: *std.Build, arch: std.Target.Cpu.Arch) std.Build.ResolvedTarget {
    return switch (arch) {
        .x86_64 => b.resolveTargetQuery(.{
            .cpu_arch = .x86_64,
            .os_tag = .linux,
            .abi = .musl,
            .cpu_model = .{ .explicit = &std.Target.x86.cpu.x86_64_v3 },
            // Without the SHA instructions, which servers before 2021 lack: src/base/sha256.zig uses them where they are.
            .cpu_features_add = std.Target.x86.featureSet(&.{ .aes, .pclmul }),
        }),
        .aarch64 => b.resolveTargetQuery(.{
            .cpu_arch = .aarch64,
            .os_tag = .linux,
            .abi = .musl,
            .cpu_features_add = std.Target.aarch64.featureSet(&.{ .aes, .sha2 }),
        }),
        else => @panic("bootfarm-edge is built for x86_64 and aarch64 Linux"),
    };
}

/// Without any instruction that a 64-bit processor may lack.
fn plainTargetOf(b: *std.Build, arch: std.Target.Cpu.Arch) std.Build.ResolvedTarget {
    return b.resolveTargetQuery(.{ .cpu_arch = arch, .os_tag = .linux, .abi = .musl, .cpu_model = .baseline });
}

/// AEGIS-128L for processors with AES instructions, in programs that start on those without, too. In Zig's standard library the
/// instructions need aes and avx on x86.
fn aegisObject(b: *std.Build, arch: std.Target.Cpu.Arch) *std.Build.Step.Compile {
    const target = b.resolveTargetQuery(.{
        .cpu_arch = arch,
        .os_tag = .linux,
        .abi = .musl,
        .cpu_model = .baseline,
        .cpu_features_add = switch (arch) {
            .x86_64 => std.Target.x86.featureSet(&.{ .aes, .avx }),
            .aarch64 => std.Target.aarch64.featureSet(&.{.aes}),
            else => @panic("the programs are built for x86_64 and aarch64 Linux"),
        },
    });
    const root = module(b, "src/aegis/aegis.zig", target, .fast, &.{});
    root.strip = true;
    return b.addObject(.{ .name = "aegis", .root_module = root });
}

/// Keys and digests, always optimised: tests and simulations are built for debugging and compute them thousands of times.
fn cryptoObject(b: *std.Build, target: std.Build.ResolvedTarget) *std.Build.Step.Compile {
    const root = module(b, "src/crypto/crypto.zig", target, .fast, &.{});
    root.strip = true;
    const object = b.addObject(.{ .name = "crypto", .root_module = root });
    // Programs take the functions that they call.
    object.link_function_sections = true;
    object.link_data_sections = true;
    return object;
}

/// The UEFI program that boot media carry; for the devices' processor, whatever the edge's is.
fn bootMediaUefi(b: *std.Build) std.Build.LazyPath {
    const target = b.resolveTargetQuery(.{ .cpu_arch = .x86_64, .os_tag = .uefi, .cpu_model = .baseline });
    const root = module(b, "src/media_uefi/main.zig", target, .small, &.{});
    root.strip = true;
    root.single_threaded = true;
    return b.addExecutable(.{ .name = "boot-media-uefi", .root_module = root }).getEmittedBin();
}

const Program = struct {
    name: []const u8,
    path: []const u8,
    /// A device may be older and smaller than the machine that runs an edge.
    runs_on: enum { edge_host, any_device } = .edge_host,
};
const programs = [_]Program{
    .{ .name = "bootfarm-edge", .path = "src/edge/main.zig" },
    .{ .name = "bootfarm-sim", .path = "src/simulator/main.zig" },
    .{ .name = "bootfarm-target", .path = "src/target/main.zig", .runs_on = .any_device },
};

fn importsOf(m: Modules) [9]Import {
    return .{
        .{ .name = "base", .module = m.base },
        .{ .name = "wire", .module = m.wire },
        .{ .name = "core", .module = m.core },
        .{ .name = "store", .module = m.store },
        .{ .name = "host", .module = m.host },
        .{ .name = "initramfs", .module = m.initramfs },
        .{ .name = "prepare", .module = m.prepare },
        .{ .name = "media", .module = m.media },
        .{ .name = "image", .module = m.image },
    };
}

pub fn build(b: *std.Build) void {
    const Optimize = std.lang.Optimize;
    const optimize = b.option(Optimize, "optimize", "mode of the programs; safe by default") orelse
        .safe;
    const Arch = std.Target.Cpu.Arch;
    const arch = b.option(Arch, "arch", "x86_64 or aarch64; this machine's by default") orelse
        builtin.cpu.arch;
    const target = targetOf(b, arch);
    const options = b.addOptions();
    options.addOption(
        []const u8,
        "version",
        b.option([]const u8, "version", "version the programs print") orelse "0.1.0",
    );

    const m = graph(b, target, optimize, options);
    const plain_target = plainTargetOf(b, arch);
    const plain = graph(b, plain_target, optimize, options);
    const check = b.step("check", "compile everything without writing programs");
    for (programs) |program| {
        const root = switch (program.runs_on) {
            .edge_host => module(b, program.path, target, optimize, &importsOf(m)),
            .any_device => module(b, program.path, plain_target, optimize, &importsOf(plain)),
        };
        if (std.mem.eql(u8, program.name, "bootfarm-sim")) root.addAnonymousImport("boot_trace_csv", .{
            .root_source_file = b.path("../../e2e/traces/boot-trace-bios.csv"),
        });
        if (std.mem.eql(u8, program.name, "bootfarm-edge"))
            root.addAnonymousImport("boot_media_uefi", .{ .root_source_file = bootMediaUefi(b) });
        // It is sent to every device at every boot.
        if (program.runs_on == .any_device) root.strip = true;
        const exe = b.addExecutable(.{
            .name = program.name,
            .linkage = .static,
            .root_module = root,
        });
        b.installArtifact(exe);
        const run = b.addRunArtifact(exe);
        run.addPassthruArgs();
        const run_name = b.fmt("run-{s}", .{program.name});
        b.step(run_name, "run it with the arguments after --").dependOn(&run.step);
        check.dependOn(&b.addExecutable(.{ .name = program.name, .root_module = root }).step);
    }

    const native = targetOf(b, builtin.cpu.arch);
    const test_optimize = b.option(Optimize, "test-optimize", "mode of the tests, sim and fuzz; safe by default") orelse
        .safe;
    const safe = graph(b, native, test_optimize, options);
    const filters = b.option([]const []const u8, "test-filter", "only tests named like this") orelse
        &.{};
    const test_all = b.step("test", "all module tests");
    inline for (@typeInfo(Modules).@"struct".field_names) |name| {
        const t = b.addTest(.{
            .name = "test-" ++ name,
            .root_module = @field(safe, name),
            .filters = filters,
        });
        const run = b.addRunArtifact(t);
        test_all.dependOn(&run.step);
        b.step("test-" ++ name, "tests of src/" ++ name).dependOn(&run.step);
    }

    const target_tests = b.addTest(.{
        .name = "test-target",
        .root_module = module(b, "src/target/main.zig", native, test_optimize, &importsOf(safe)),
        .filters = filters,
    });
    const run_target_tests = b.addRunArtifact(target_tests);
    test_all.dependOn(&run_target_tests.step);
    b.step("test-target", "tests of src/target").dependOn(&run_target_tests.step);

    const edge_root = module(b, "src/edge/main.zig", native, test_optimize, &importsOf(safe));
    edge_root.addAnonymousImport("boot_media_uefi", .{ .root_source_file = bootMediaUefi(b) });
    const edge_tests = b.addTest(.{ .name = "test-edge", .root_module = edge_root, .filters = filters });
    const run_edge_tests = b.addRunArtifact(edge_tests);
    test_all.dependOn(&run_edge_tests.step);
    b.step("test-edge", "tests of src/edge").dependOn(&run_edge_tests.step);

    const sim = b.addExecutable(.{
        .name = "sim",
        .root_module = module(b, "src/sim/main.zig", native, test_optimize, &.{
            .{ .name = "base", .module = safe.base },
            .{ .name = "sim", .module = safe.sim },
        }),
    });
    check.dependOn(&b.addExecutable(.{ .name = "sim", .root_module = sim.root_module }).step);
    const run_sim = b.addRunArtifact(sim);
    run_sim.addPassthruArgs();
    run_sim.has_side_effects = true;
    const sim_help = "simulate: core and store over a fake network, disk and clock; -- --seed N";
    b.step("sim", sim_help).dependOn(&run_sim.step);

    const store_proof = b.addExecutable(.{
        .name = "store-proof",
        .root_module = module(b, "src/sim/store_main.zig", native, test_optimize, &.{
            .{ .name = "base", .module = safe.base },
            .{ .name = "store", .module = safe.sim.import_table.get("store").? },
        }),
    });
    check.dependOn(&b.addExecutable(.{ .name = "store-proof", .root_module = store_proof.root_module }).step);
    const run_store_proof = b.addRunArtifact(store_proof);
    run_store_proof.addPassthruArgs();
    run_store_proof.has_side_effects = true;
    const proof_help = "the vDisk store against its model, on a disk that loses and tears";
    b.step("store-proof", proof_help).dependOn(&run_store_proof.step);

    const stream_proof = b.addExecutable(.{
        .name = "stream-proof",
        .root_module = module(b, "src/sim/stream_main.zig", native, test_optimize, &.{
            .{ .name = "base", .module = safe.base },
            .{ .name = "wire", .module = safe.wire },
            .{ .name = "core", .module = safe.core },
        }),
    });
    check.dependOn(&b.addExecutable(.{ .name = "stream-proof", .root_module = stream_proof.root_module }).step);
    const run_stream_proof = b.addRunArtifact(stream_proof);
    run_stream_proof.addPassthruArgs();
    run_stream_proof.has_side_effects = true;
    const stream_help = "the stream's server and clients over a network that does its worst";
    b.step("stream-proof", stream_help).dependOn(&run_stream_proof.step);

    const store_bench = b.addExecutable(.{
        .name = "store-bench",
        .root_module = module(b, "src/bench/main.zig", native, .safe, &.{
            .{ .name = "base", .module = m.base },
            .{ .name = "wire", .module = m.wire },
            .{ .name = "store", .module = m.store },
            .{ .name = "target", .module = module(b, "src/target/attach.zig", native, .safe, &importsOf(m)) },
        }),
    });
    b.step("install-store-bench", "write the program that measures the store").dependOn(&b.addInstallArtifact(store_bench, .{}).step);
    const run_store_bench = b.addRunArtifact(store_bench);
    run_store_bench.addPassthruArgs();
    run_store_bench.has_side_effects = true;
    const bench_help = "measure the vDisk store in a directory beside plain files";
    b.step("store-bench", bench_help).dependOn(&run_store_bench.step);

    const stream_bench_root = module(b, "src/bench/stream/main.zig", native, .safe, &.{
        .{ .name = "base", .module = m.base },
        .{ .name = "wire", .module = m.wire },
        .{ .name = "core", .module = m.core },
        .{ .name = "host", .module = m.host },
    });
    const stream_bench = b.addExecutable(.{ .name = "stream-bench", .root_module = stream_bench_root });
    check.dependOn(&b.addExecutable(.{ .name = "stream-bench", .root_module = stream_bench_root }).step);
    const stream_bench_tests = b.addTest(.{
        .name = "test-stream-bench",
        .root_module = module(b, "src/bench/stream/tests.zig", native, test_optimize, &.{}),
        .filters = filters,
    });
    const run_stream_bench_tests = b.addRunArtifact(stream_bench_tests);
    test_all.dependOn(&run_stream_bench_tests.step);
    b.step("test-stream-bench", "tests of src/bench/stream").dependOn(&run_stream_bench_tests.step);
    const stream_bench_help = "write the program that measures the stream";
    b.step("install-stream-bench", stream_bench_help).dependOn(&b.addInstallArtifact(stream_bench, .{}).step);

    const fuzz = b.addExecutable(.{
        .name = "fuzz",
        .root_module = module(b, "src/fuzz/main.zig", native, test_optimize, &.{
            .{ .name = "base", .module = safe.base },
            .{ .name = "wire", .module = safe.wire },
            .{ .name = "core", .module = safe.core },
            .{ .name = "store", .module = safe.store },
            .{ .name = "image", .module = safe.image },
        }),
    });
    check.dependOn(&b.addExecutable(.{ .name = "fuzz", .root_module = fuzz.root_module }).step);
    const run_fuzz = b.addRunArtifact(fuzz);
    run_fuzz.addPassthruArgs();
    run_fuzz.has_side_effects = true;
    const fuzz_help = "feed every parser; -- --seed N --cases N --target NAME";
    b.step("fuzz", fuzz_help).dependOn(&run_fuzz.step);
}
