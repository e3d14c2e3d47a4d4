//! Builds the site agent. Each folder of src/ is a module of its own: what is not in its import
//! list cannot be imported, so the compiler keeps the order base <- wire <- core <- store <- agent
//! <- host <- edge, and agent, store <- sim (never host).

const std = @import("std");
const builtin = @import("builtin");

comptime {
    if (!std.mem.eql(u8, builtin.zig_version_string, "0.17.0"))
        @compileError("needs Zig 0.17.0, found " ++ builtin.zig_version_string ++
            "; `npm start` and `npm test` fetch it into .toolchain/");
}

const Modules = struct {
    base: *std.Build.Module,
    codec: *std.Build.Module,
    wire: *std.Build.Module,
    core: *std.Build.Module,
    store: *std.Build.Module,
    agent: *std.Build.Module,
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
    const codec = module(b, "src/codec/codec.zig", target, optimize, &.{});
    const base_import: Import = .{ .name = "base", .module = base };
    const wire = module(b, "src/wire/wire.zig", target, optimize, &.{base_import});
    const wire_import: Import = .{ .name = "wire", .module = wire };
    const codec_import: Import = .{ .name = "codec", .module = codec };
    const core_imports = [_]Import{ base_import, codec_import, wire_import };
    const core = module(b, "src/core/core.zig", target, optimize, &core_imports);
    const core_import: Import = .{ .name = "core", .module = core };
    const below_store = [_]Import{ base_import, wire_import, core_import };
    const of_store = below_store ++ [_]Import{codec_import};
    const store = storeModule(b, target, optimize, &of_store, .product);
    const store_import: Import = .{ .name = "store", .module = store };
    const below_agent = [_]Import{ base_import, wire_import, core_import, store_import };
    const agent = agentModule(b, target, optimize, &below_agent, .product);
    const agent_import: Import = .{ .name = "agent", .module = agent };
    const lower = below_agent ++ [_]Import{agent_import};
    const host_imports = lower ++ [_]Import{codec_import};
    const host = module(b, "src/host/host.zig", target, optimize, &host_imports);
    const base_and_wire = [_]Import{ base_import, wire_import };
    const initramfs_path = "src/initramfs/initramfs.zig";
    const initramfs = module(b, initramfs_path, target, optimize, &base_and_wire);
    const prepare = module(b, "src/prepare/prepare.zig", target, optimize, &.{
        base_import,
        .{ .name = "host", .module = host },
        .{ .name = "initramfs", .module = initramfs },
    });
    const media = module(b, "src/media/media.zig", target, optimize, &.{base_import});
    const image_imports = [_]Import{ base_import, wire_import, store_import };
    const image = module(b, "src/image/image.zig", target, optimize, &image_imports);
    const simulated_store: Import = .{
        .name = "store",
        .module = storeModule(b, target, optimize, &of_store, .simulated),
    };
    const simulated = below_store ++ [_]Import{simulated_store};
    const sim = module(b, "src/sim/sim.zig", target, optimize, &(simulated ++ [_]Import{
        codec_import,
        .{ .name = "agent", .module = agentModule(b, target, optimize, &simulated, .simulated) },
    }));
    base.addOptions("config", options);
    embedVectors(b, wire, core);
    embedDifferences(b, store);
    return .{
        .base = base,
        .codec = codec,
        .wire = wire,
        .core = core,
        .store = store,
        .agent = agent,
        .host = host,
        .initramfs = initramfs,
        .prepare = prepare,
        .media = media,
        .image = image,
        .sim = sim,
    };
}

fn embedDifferences(b: *std.Build, store: *std.Build.Module) void {
    const vectors = "../../packages/proto/vectors/";
    embed(b, store, "difference_whole", vectors ++ "difference-v1-whole.bin");
    embed(b, store, "difference_update", vectors ++ "difference-v1-update.bin");
}

fn embedVectors(b: *std.Build, wire: *std.Build.Module, core: *std.Build.Module) void {
    const proto = "../../packages/proto/";
    embed(b, core, "boot_phases_json", proto ++ "boot-phases.json");
    embed(b, core, "uplink_vectors_json", proto ++ "vectors/uplink-v1.json");
    embed(b, core, "boot_loading_vectors_json", proto ++ "vectors/boot-loading-v1.json");
    embed(b, core, "state_delta_vectors_json", proto ++ "vectors/state-delta-v1.json");
    embed(b, core, "sealed_box_vectors_json", proto ++ "vectors/sealed-box-v1.json");
    embed(b, core, "releases_vectors_json", proto ++ "vectors/releases-v1.json");
    embed(b, core, "tuf_vectors_json", proto ++ "vectors/tuf-v1.json");
    embed(b, core, "peers_vectors_json", proto ++ "vectors/peers-v1.json");
    embed(b, wire, "peers_vectors_json", proto ++ "vectors/peers-v1.json");
    embed(b, wire, "peer_transfer_vectors_json", proto ++ "vectors/peer-transfer-v1.json");
    embed(b, wire, "stream_vectors_v2_json", proto ++ "vectors/stream-v2.json");
    embed(b, wire, "stream_vectors_v3_json", proto ++ "vectors/stream-v3.json");
    embed(b, wire, "stream_profiles_json", proto ++ "vectors/stream-profiles-v2.json");
    embed(b, wire, "dhcp_vectors_json", proto ++ "vectors/dhcp-v1.json");
    embed(b, wire, "tftp_vectors_json", proto ++ "vectors/tftp-v1.json");
    embed(b, core, "tftp_vectors_json", proto ++ "vectors/tftp-v1.json");
    embed(b, core, "stream_sealed_vectors_v2_json", proto ++ "vectors/stream-sealed-v2.json");
    embed(b, core, "stream_sealed_vectors_v3_json", proto ++ "vectors/stream-sealed-v3.json");
    embed(b, core, "stream_packed_vectors_json", proto ++ "vectors/stream-packed-v1.json");
    embed(b, core, "stream_lost_vectors_json", proto ++ "vectors/stream-lost-v3.json");
    embed(b, core, "stream_tickets_v1_json", proto ++ "vectors/stream-tickets-v1.json");
    embed(b, core, "stream_tickets_v2_json", proto ++ "vectors/stream-tickets-v2.json");
    embed(b, core, "boot_trace_csv", "../../e2e/traces/boot-trace-bios.csv");
}

/// The simulation has its own store, into which it can plant bugs. No other program is compiled
/// with them.
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

/// The simulation has an agent of its own, into which it can put mutants.
fn agentModule(
    b: *std.Build,
    target: std.Build.ResolvedTarget,
    optimize: std.lang.Optimize,
    imports: []const Import,
    of: enum { product, simulated },
) *std.Build.Module {
    const options = b.addOptions();
    options.addOption(bool, "has_mutants", of == .simulated);
    const agent = module(b, "src/agent/agent.zig", target, optimize, imports);
    agent.addOptions("agent_options", options);
    return agent;
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
            // Without the SHA instructions, which servers before 2021 lack: src/base/sha256.zig
            // uses them where they are.
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
    return b.resolveTargetQuery(.{
        .cpu_arch = arch,
        .os_tag = .linux,
        .abi = .musl,
        .cpu_model = .baseline,
    });
}

/// AEGIS-128L for processors with AES instructions, in programs that also start on those without.
/// In Zig's standard library the instructions need aes and avx on x86.
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

/// Keys and digests, always optimised: tests and simulations are built for debugging and compute
/// them thousands of times.
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
    const target = b.resolveTargetQuery(.{
        .cpu_arch = .x86_64,
        .os_tag = .uefi,
        .cpu_model = .baseline,
    });
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

fn importsOf(m: Modules) [11]Import {
    return .{
        .{ .name = "base", .module = m.base },
        .{ .name = "codec", .module = m.codec },
        .{ .name = "wire", .module = m.wire },
        .{ .name = "core", .module = m.core },
        .{ .name = "store", .module = m.store },
        .{ .name = "agent", .module = m.agent },
        .{ .name = "host", .module = m.host },
        .{ .name = "initramfs", .module = m.initramfs },
        .{ .name = "prepare", .module = m.prepare },
        .{ .name = "media", .module = m.media },
        .{ .name = "image", .module = m.image },
    };
}

/// What the options of `zig build` choose, and the steps that more than one program belongs to.
const Plan = struct {
    b: *std.Build,
    optimize: Optimize,
    /// Of what is not built for debugging: that always has them.
    keeps_symbols: bool,
    /// Of tests, simulations and fuzzers.
    test_optimize: Optimize,
    filters: []const []const u8,
    target: std.Build.ResolvedTarget,
    plain_target: std.Build.ResolvedTarget,
    /// This machine's, whatever the programs are built for.
    native: std.Build.ResolvedTarget,
    modules: Modules,
    plain_modules: Modules,
    test_modules: Modules,
    check: *std.Build.Step,
    check_programs: *std.Build.Step,
    demo: *std.Build.Step,
    test_all: *std.Build.Step,
    test_light: *std.Build.Step,
    test_heavy: *std.Build.Step,

    const Optimize = std.lang.Optimize;

    fn init(b: *std.Build) Plan {
        const optimize_help = "mode of the programs; safe by default";
        const optimize = b.option(Optimize, "optimize", optimize_help) orelse .safe;
        const symbols_help = "keep debug symbols, which double the time of an optimised build";
        const keeps_symbols = b.option(bool, "symbols", symbols_help) orelse false;
        const Arch = std.Target.Cpu.Arch;
        const arch = b.option(Arch, "arch", "x86_64 or aarch64; this machine's by default") orelse
            builtin.cpu.arch;
        const options = b.addOptions();
        const version_help = "version the programs print";
        const version = b.option([]const u8, "version", version_help) orelse "0.1.0";
        options.addOption([]const u8, "version", version);
        const test_help = "mode of the tests, sim and fuzz; safe by default";
        const test_optimize = b.option(Optimize, "test-optimize", test_help) orelse .safe;
        const filter_help = "only tests named like this";
        const target = targetOf(b, arch);
        const plain_target = plainTargetOf(b, arch);
        const native = targetOf(b, builtin.cpu.arch);
        return .{
            .b = b,
            .optimize = optimize,
            .keeps_symbols = keeps_symbols,
            .test_optimize = test_optimize,
            .filters = b.option([]const []const u8, "test-filter", filter_help) orelse &.{},
            .target = target,
            .plain_target = plain_target,
            .native = native,
            .modules = graph(b, target, optimize, options),
            .plain_modules = graph(b, plain_target, optimize, options),
            .test_modules = graph(b, native, test_optimize, options),
            .check = b.step("check", "compile everything without writing programs"),
            .check_programs = b.step("check-programs", "those that edges and devices run"),
            .demo = b.step("demo", "write what `npm start` needs where no real machine boots"),
            .test_all = b.step("test", "all module tests"),
            .test_light = b.step("test-light", "those that compute little: quickest in debug mode"),
            .test_heavy = b.step("test-heavy", "those that compute much: quickest in safe mode"),
        };
    }

    fn leavesOutSymbols(plan: Plan, optimize: Optimize) bool {
        return !plan.keeps_symbols and optimize != .debug;
    }

    /// An edge or what a device runs: installed, run by `run-NAME`.
    fn addProgram(plan: Plan, program: Program) void {
        const b = plan.b;
        const target, const modules = switch (program.runs_on) {
            .edge_host => .{ plan.target, plan.modules },
            .any_device => .{ plan.plain_target, plan.plain_modules },
        };
        const root = module(b, program.path, target, plan.optimize, &importsOf(modules));
        if (std.mem.eql(u8, program.name, "bootfarm-sim"))
            embed(b, root, "boot_trace_csv", "../../e2e/traces/boot-trace-bios.csv");
        if (std.mem.eql(u8, program.name, "bootfarm-edge")) plan.addEmbedded(root);
        // What devices run is sent to each of them at every boot.
        root.strip = plan.leavesOutSymbols(plan.optimize) or program.runs_on == .any_device;
        const exe = b.addExecutable(.{
            .name = program.name,
            .linkage = .static,
            .root_module = root,
        });
        b.installArtifact(exe);
        if (program.runs_on == .edge_host) plan.demo.dependOn(&b.addInstallArtifact(exe, .{}).step);
        const run = b.addRunArtifact(exe);
        run.addPassthruArgs();
        const run_name = b.fmt("run-{s}", .{program.name});
        b.step(run_name, "run it with the arguments after --").dependOn(&run.step);
        const checked = b.addExecutable(.{ .name = program.name, .root_module = root });
        plan.check_programs.dependOn(&checked.step);
    }

    /// What an edge hands out of itself: it must be there when only this one program was installed.
    fn addEmbedded(plan: Plan, edge: *std.Build.Module) void {
        const b = plan.b;
        const imports = importsOf(plan.plain_modules);
        const target =
            module(b, "src/target/main.zig", plan.plain_target, plan.optimize, &imports);
        target.strip = true;
        const exe = b.addExecutable(.{
            .name = "bootfarm-target",
            .linkage = .static,
            .root_module = target,
        });
        edge.addAnonymousImport("bootfarm_target", .{ .root_source_file = exe.getEmittedBin() });
        edge.addAnonymousImport("boot_media_uefi", .{ .root_source_file = bootMediaUefi(b) });
        const vectors = "../../packages/proto/vectors/files-read-v1.json";
        embed(b, edge, "files_read_vectors_json", vectors);
    }

    /// Run alone by `test-NAME`, and with all others by `test`.
    fn addTests(plan: Plan, name: []const u8, root: *std.Build.Module) void {
        const b = plan.b;
        const step_name = b.fmt("test-{s}", .{name});
        root.strip = plan.leavesOutSymbols(plan.test_optimize);
        const tests = b.addTest(.{
            .name = step_name,
            .root_module = root,
            .filters = plan.filters,
        });
        const run = b.addRunArtifact(tests);
        plan.test_all.dependOn(&run.step);
        const is_heavy = std.mem.eql(u8, name, "store") or std.mem.eql(u8, name, "sim");
        const of_weight = if (is_heavy) plan.test_heavy else plan.test_light;
        of_weight.dependOn(&run.step);
        b.step(step_name, b.fmt("tests of {s}", .{name})).dependOn(&run.step);
    }

    const Tool = struct { name: []const u8, path: []const u8, help: []const u8 };

    /// Built for this machine and run, each time, with the arguments after `--`.
    fn addTool(plan: Plan, tool: Tool, imports: []const Import) void {
        const b = plan.b;
        const root = module(b, tool.path, plan.native, plan.test_optimize, imports);
        root.strip = plan.leavesOutSymbols(plan.test_optimize);
        const exe = b.addExecutable(.{ .name = tool.name, .root_module = root });
        plan.check.dependOn(&b.addExecutable(.{ .name = tool.name, .root_module = root }).step);
        plan.addRun(exe, tool.help);
    }

    fn addRun(plan: Plan, exe: *std.Build.Step.Compile, help: []const u8) void {
        const run = plan.b.addRunArtifact(exe);
        run.addPassthruArgs();
        run.has_side_effects = true;
        plan.b.step(exe.name, help).dependOn(&run.step);
    }
};

pub fn build(b: *std.Build) void {
    const plan: Plan = .init(b);
    plan.check.dependOn(plan.check_programs);
    for (programs) |program| plan.addProgram(program);
    addAllTests(plan);
    addSimulations(plan);
    addStoreBench(plan);
    addTableBench(plan);
    addStreamBench(plan);
    addMutation(plan);
}

fn addAllTests(plan: Plan) void {
    const b = plan.b;
    const modules = plan.test_modules;
    inline for (@typeInfo(Modules).@"struct".field_names) |name|
        plan.addTests(name, @field(modules, name));
    const imports = importsOf(modules);
    const target_path = "src/target/main.zig";
    plan.addTests("target", module(b, target_path, plan.native, plan.test_optimize, &imports));
    const edge = module(b, "src/edge/main.zig", plan.native, plan.test_optimize, &imports);
    plan.addEmbedded(edge);
    plan.addTests("edge", edge);
}

fn addSimulations(plan: Plan) void {
    const modules = plan.test_modules;
    const base: Import = .{ .name = "base", .module = modules.base };
    const wire: Import = .{ .name = "wire", .module = modules.wire };
    const core: Import = .{ .name = "core", .module = modules.core };
    const simulated_store = modules.sim.import_table.get("store").?;
    plan.addTool(.{
        .name = "sim",
        .path = "src/sim/main.zig",
        .help = "simulate: core and store over a fake network, disk and clock; -- --seed N",
    }, &.{ base, .{ .name = "sim", .module = modules.sim } });
    plan.addTool(.{
        .name = "store-sim",
        .path = "src/sim/store_main.zig",
        .help = "simulate: the vDisk store beside its model, on a disk that loses and tears writes",
    }, &.{
        base,
        .{ .name = "codec", .module = modules.codec },
        .{ .name = "store", .module = simulated_store },
    });
    plan.addTool(.{
        .name = "stream-sim",
        .path = "src/sim/stream_main.zig",
        .help = "simulate: the stream of agent and clients over a network with faults; -- --run N",
    }, &.{
        base,
        wire,
        core,
        .{ .name = "codec", .module = modules.codec },
        .{ .name = "store", .module = simulated_store },
        .{ .name = "agent", .module = modules.sim.import_table.get("agent").? },
    });
    plan.addTool(.{
        .name = "fuzz",
        .path = "src/fuzz/main.zig",
        .help = "feed every parser; -- --seed N --cases N --target NAME",
    }, &.{
        base,
        wire,
        core,
        .{ .name = "codec", .module = modules.codec },
        .{ .name = "store", .module = modules.store },
        .{ .name = "image", .module = modules.image },
    });
}

fn addStoreBench(plan: Plan) void {
    const b = plan.b;
    const m = plan.modules;
    const attach = module(b, "src/target/attach.zig", plan.native, .safe, &importsOf(m));
    const exe = b.addExecutable(.{
        .name = "store-bench",
        .root_module = module(b, "src/bench/main.zig", plan.native, .safe, &.{
            .{ .name = "base", .module = m.base },
            .{ .name = "codec", .module = m.codec },
            .{ .name = "wire", .module = m.wire },
            .{ .name = "store", .module = m.store },
            .{ .name = "target", .module = attach },
        }),
    });
    const install = b.step("install-store-bench", "write the program that measures the store");
    install.dependOn(&b.addInstallArtifact(exe, .{}).step);
    plan.addRun(exe, "measure the vDisk store in a directory beside plain files");
}

fn addTableBench(plan: Plan) void {
    const m = plan.modules;
    const exe = plan.b.addExecutable(.{
        .name = "table-bench",
        .root_module = module(plan.b, "src/bench/tables/main.zig", plan.native, .safe, &.{
            .{ .name = "base", .module = m.base },
            .{ .name = "core", .module = m.core },
        }),
    });
    plan.addRun(exe, "measure look-ups in full tables");
}

fn addStreamBench(plan: Plan) void {
    const b = plan.b;
    const m = plan.modules;
    const root = module(b, "src/bench/stream/main.zig", plan.native, .safe, &.{
        .{ .name = "base", .module = m.base },
        .{ .name = "wire", .module = m.wire },
        .{ .name = "core", .module = m.core },
        .{ .name = "host", .module = m.host },
    });
    const exe = b.addExecutable(.{ .name = "stream-bench", .root_module = root });
    plan.check.dependOn(&b.addExecutable(.{ .name = "stream-bench", .root_module = root }).step);
    const tests_path = "src/bench/stream/tests.zig";
    plan.addTests("stream-bench", module(b, tests_path, plan.native, plan.test_optimize, &.{}));
    const install = b.step("install-stream-bench", "write the program that measures the stream");
    install.dependOn(&b.addInstallArtifact(exe, .{}).step);
}

/// `scripts/mutation` builds the tests in a mutated copy of this folder, where the runner's symbols
/// are.
fn addMutation(plan: Plan) void {
    const b = plan.b;
    plan.addTool(.{
        .name = "mutate",
        .path = "src/mutation/mutate.zig",
        .help = "write mutants into a copy of the sources; `npm run mutation` runs the tests on it",
    }, &.{});
    const sites_path = "src/mutation/sites.zig";
    plan.addTests("mutation", module(b, sites_path, plan.native, plan.test_optimize, &.{}));
    const step = b.step("mutation-programs", "the tests, of a mutated copy of the sources");
    inline for (.{ "core", "store", "agent", "host", "sim" }) |name| {
        const tests = b.addTest(.{
            .name = "mutation-" ++ name,
            .root_module = @field(plan.test_modules, name),
            .test_runner = .{ .path = b.path("src/mutation/runner.zig"), .mode = .simple },
        });
        step.dependOn(&b.addInstallArtifact(tests, .{}).step);
    }
}
