// swift-tools-version: 6.2
// SPDX-License-Identifier: Apache-2.0

import PackageDescription

/// See Examples/README.md.
let examples = ["LevelUp", "Cloudy", "SyncMe", "RoundTrip", "Magazine"]

let package = Package(
    name: "ubiquity",
    platforms: [.macOS(.v15), .iOS(.v18), .tvOS(.v18), .watchOS(.v11), .visionOS(.v2)],
    products: [
        .library(name: "Ubiquity", targets: ["Ubiquity"]),
        .library(name: "UbiquityDefaults", targets: ["UbiquityDefaults"]),
        .library(name: "UbiquityTesting", targets: ["UbiquityTesting"]),
        .executable(name: "ubiquity", targets: ["UbiquityCLI"]),
        .executable(name: "ubiquity-simulator", targets: ["UbiquitySimulator"]),
        .executable(name: "ubiquity-conformance", targets: ["UbiquityConformance"]),
    ],
    traits: [
        .trait(
            name: "Server", description: "The server, the programs, the examples and the tests.")
    ],
    dependencies: [
        .package(url: "https://github.com/apple/swift-argument-parser", from: "1.8.2"),
        .package(url: "https://github.com/apple/swift-asn1", from: "1.7.4"),
        .package(url: "https://github.com/apple/swift-certificates", from: "1.21.1"),
        .package(url: "https://github.com/apple/swift-crypto", from: "4.5.2"),
        .package(url: "https://github.com/apple/swift-log", from: "1.16.2"),
        .package(url: "https://github.com/apple/swift-nio", from: "2.101.2"),
        .package(url: "https://github.com/apple/swift-nio-ssl", from: "2.37.6"),
        // Without traits, here and below: a package with two of them would often be compiled anew,
        // because SwiftPM passes them to the compiler in any order.
        .package(url: "https://github.com/apple/swift-protobuf", from: "1.39.0", traits: []),
        .package(url: "https://github.com/groue/GRDB.swift", from: "7.10.0"),
        .package(url: "https://github.com/swift-server/swift-service-lifecycle", from: "2.13.0"),
        .package(url: "https://github.com/vapor/jwt-kit", from: "5.7.1"),
    ],
    targets: [
        // What must be right: values and rules, no I/O.
        .target(
            name: "UbiquityCore",
            // Rounding: where nothing else links Foundation, nothing links this.
            linkerSettings: [.linkedLibrary("m", .when(platforms: [.linux]))]),
        // The messages of the protocol and their mapping to Core.
        .target(
            name: "UbiquityWire",
            dependencies: [
                "UbiquityCore",
                .product(name: "SwiftProtobuf", package: "swift-protobuf"),
            ]),
        // The client library.
        .target(
            name: "Ubiquity",
            dependencies: [
                "UbiquityCore", "UbiquityHTTP", "UbiquityWire",
                .target(
                    name: "URLSessionHTTP",
                    condition: .when(platforms: [.macOS, .iOS, .tvOS, .watchOS, .visionOS])),
                .product(name: "GRDB", package: "GRDB.swift"),
                .product(name: "Logging", package: "swift-log"),
            ]),
        // Requests over HTTP: by libcurl, which is loaded when the first is made.
        .target(name: "CCurl"),
        .target(
            name: "UbiquityHTTP",
            dependencies: [
                .target(name: "CCurl", condition: .when(platforms: [.linux])), "UbiquityCore",
            ]),
        // The same by what Apple's systems have; elsewhere only its tests use it.
        .target(name: "URLSessionHTTP", dependencies: ["UbiquityCore", "UbiquityHTTP"]),
        // PostgreSQL's client library, which a server loads when it has such a database.
        .target(name: "CLibpq"),
        // The mirror of UserDefaults.
        .target(name: "UbiquityDefaults", dependencies: ["Ubiquity", "UbiquityCore"]),
        .target(
            name: "UbiquityServer",
            dependencies: [
                "CLibpq", "UbiquityCore", "UbiquityHTTP", "UbiquityWire",
                .product(name: "Crypto", package: "swift-crypto"),
                .product(name: "GRDB", package: "GRDB.swift"),
                .product(name: "GRDBSQLite", package: "GRDB.swift"),
                .product(name: "JWTKit", package: "jwt-kit"),
                .product(name: "Logging", package: "swift-log"),
                .product(name: "NIOCore", package: "swift-nio"),
                .product(name: "NIOHTTP1", package: "swift-nio"),
                .product(name: "NIOPosix", package: "swift-nio"),
                .product(name: "NIOSSL", package: "swift-nio-ssl"),
                .product(name: "ServiceLifecycle", package: "swift-service-lifecycle"),
                .product(name: "SwiftASN1", package: "swift-asn1"),
                .product(name: "SwiftProtobuf", package: "swift-protobuf"),
                .product(name: "UnixSignals", package: "swift-service-lifecycle"),
                .product(name: "X509", package: "swift-certificates"),
            ]),
        // Says what to do if the trait is off.
        .target(name: "ServerTrait"),
        // The commit that the program was built from, if the build was told.
        .target(name: "BuildCommit"),
        // Named apart from its product: `ubiquity` and `Ubiquity` would be one module on
        // a disk that ignores case.
        .executableTarget(
            name: "UbiquityCLI",
            dependencies: [
                "BuildCommit", "Ubiquity", "UbiquityCore", "UbiquityServer", "UbiquityWire",
                .product(name: "ArgumentParser", package: "swift-argument-parser"),
                .product(name: "Logging", package: "swift-log"),
                .product(name: "UnixSignals", package: "swift-service-lifecycle"),
            ]),
        // One seed, virtual time, faults, and checkers: no sockets, no disk, no third-party package.
        .target(name: "UbiquitySimulation", dependencies: ["UbiquityCore"]),
        .executableTarget(
            name: "UbiquitySimulator",
            dependencies: [
                "UbiquitySimulation",
                .product(name: "ArgumentParser", package: "swift-argument-parser"),
            ]),
        // The same server, network and checkers for a client in any language, as a process.
        .executableTarget(
            name: "UbiquityConformance",
            dependencies: [
                "UbiquityCore", "UbiquitySimulation", "UbiquityWire",
                .product(name: "ArgumentParser", package: "swift-argument-parser"),
            ]),
        // The client library as such a process.
        .executableTarget(
            name: "ConformanceClient",
            dependencies: [
                "Ubiquity", "UbiquityCore", "UbiquityHTTP", "UbiquitySimulation", "UbiquityWire",
            ],
            path: "Tests/Conformance"),
        // A cloud in an app's tests: the library's own store on the simulator's devices and server.
        .target(
            name: "UbiquityTesting",
            dependencies: ["Ubiquity", "UbiquityCore", "UbiquitySimulation"]),
        // As an app's tests are.
        .testTarget(
            name: "UbiquityTestingTests", dependencies: ["Ubiquity", "UbiquityTesting"],
            packageAccess: false),
        .testTarget(
            name: "UbiquitySimulationTests",
            // The program too, which the tests start.
            dependencies: [
                "ProcessHarness", "UbiquityCore", "UbiquitySimulation", "UbiquitySimulator",
            ]),
        // The program and others of this build as processes that leave nothing behind: for the tests,
        // the examples and the benchmarks.
        .target(
            name: "ProcessHarness",
            dependencies: [
                .product(name: "NIOCore", package: "swift-nio"),
                .product(name: "NIOPosix", package: "swift-nio"),
            ],
            path: "Tests/ProcessHarness"),
        // What the tests of the client's libraries share.
        .target(
            name: "ClientTestSupport",
            dependencies: [
                "Ubiquity", "UbiquityCore", "UbiquityHTTP",
                .product(name: "Logging", package: "swift-log"),
                .product(name: "NIOCore", package: "swift-nio"),
                .product(name: "NIOHTTP1", package: "swift-nio"),
                .product(name: "NIOPosix", package: "swift-nio"),
            ],
            path: "Tests/ClientSupport"),
        .testTarget(
            name: "UbiquityTests",
            dependencies: [
                "ClientTestSupport", "ProcessHarness", "URLSessionHTTP", "Ubiquity", "UbiquityCore",
                "UbiquityHTTP", "UbiquityWire",
                .product(name: "GRDB", package: "GRDB.swift"),
                .product(name: "Logging", package: "swift-log"),
                .product(name: "NIOCore", package: "swift-nio"),
                .product(name: "NIOHTTP1", package: "swift-nio"),
                .product(name: "NIOPosix", package: "swift-nio"),
                .product(name: "NIOSSL", package: "swift-nio-ssl"),
            ]),
        .testTarget(
            name: "UbiquityDefaultsTests",
            dependencies: [
                "ClientTestSupport", "Ubiquity", "UbiquityCore", "UbiquityDefaults",
                "UbiquityServer", "UbiquityWire",
                .product(name: "Logging", package: "swift-log"),
            ]),
        .testTarget(
            name: "UbiquityCLITests",
            dependencies: [
                "ClientTestSupport", "ProcessHarness", "Ubiquity", "UbiquityCLI", "UbiquityCore",
                "UbiquityServer", "UbiquityWire",
                .product(name: "ArgumentParser", package: "swift-argument-parser"),
                .product(name: "Logging", package: "swift-log"),
                .product(name: "NIOHTTP1", package: "swift-nio"),
            ]),
        // Needs the programs too, and starts them.
        .testTarget(
            name: "EndToEndTests",
            dependencies: [
                "ClientTestSupport", "Demo", "ProcessHarness", "SyncMe", "TortureLanguage",
                "Ubiquity", "UbiquityCLI", "UbiquityCore", "UbiquitySimulation",
                "UbiquityTestWorker",
                "UbiquityTorture", "UbiquityWire",
                .product(name: "Logging", package: "swift-log"),
                .product(name: "NIOCore", package: "swift-nio"),
                .product(name: "NIOHTTP1", package: "swift-nio"),
                .product(name: "NIOPosix", package: "swift-nio"),
            ]),
        // An app for the end-to-end tests to start several of.
        .executableTarget(
            name: "UbiquityTestWorker",
            dependencies: [
                "TortureLanguage", "Ubiquity", "UbiquityCore", "UbiquityDefaults",
                "UbiquitySimulation",
                .product(name: "ArgumentParser", package: "swift-argument-parser"),
                .product(name: "Logging", package: "swift-log"),
            ],
            path: "Tests/Worker"),
        // Real servers and devices as processes, a proxy between them, kills, and the simulator's
        // checkers: `make torture`.
        .executableTarget(
            name: "UbiquityTorture",
            dependencies: [
                "ClientTestSupport", "ProcessHarness", "TortureLanguage", "Ubiquity",
                "UbiquityCore", "UbiquitySimulation",
                .product(name: "ArgumentParser", package: "swift-argument-parser"),
                .product(name: "GRDB", package: "GRDB.swift"),
                .product(name: "NIOCore", package: "swift-nio"),
                .product(name: "NIOPosix", package: "swift-nio"),
            ],
            path: "Tests/Torture"),
        // What the torture and its apps say to each other.
        .target(
            name: "TortureLanguage", dependencies: ["UbiquityCore", "UbiquitySimulation"],
            path: "Tests/TortureLanguage"),
        .testTarget(name: "UbiquityWireTests", dependencies: ["UbiquityCore", "UbiquityWire"]),
        .testTarget(name: "UbiquityCoreTests", dependencies: ["UbiquityCore"]),
        // Code as apps for Apple's systems have it, in both languages they are written in.
        .testTarget(
            name: "DropInTests", dependencies: ["DropInSupport", "Ubiquity"],
            path: "Tests/DropIn/Swift6", packageAccess: false),
        .testTarget(
            name: "DropInSwift5Tests", dependencies: ["DropInSupport", "Ubiquity"],
            path: "Tests/DropIn/Swift5", packageAccess: false,
            swiftSettings: [.swiftLanguageMode(.v5)]),
        // What the tests of both share.
        .target(
            name: "DropInSupport", dependencies: ["Ubiquity"], path: "Tests/DropIn/Support",
            packageAccess: false),
        .testTarget(
            name: "UbiquityServerTests",
            dependencies: [
                "ClientTestSupport", "ProcessHarness", "Ubiquity", "UbiquityCore", "UbiquityHTTP",
                "UbiquityServer", "UbiquitySimulation", "UbiquityWire",
                .product(name: "Crypto", package: "swift-crypto"),
                .product(name: "CryptoExtras", package: "swift-crypto"),
                .product(name: "GRDB", package: "GRDB.swift"),
                .product(name: "Logging", package: "swift-log"),
                .product(name: "NIOCore", package: "swift-nio"),
                .product(name: "NIOEmbedded", package: "swift-nio"),
                .product(name: "NIOHTTP1", package: "swift-nio"),
                .product(name: "NIOPosix", package: "swift-nio"),
                .product(name: "NIOSSL", package: "swift-nio-ssl"),
                .product(name: "SwiftASN1", package: "swift-asn1"),
                .product(name: "SwiftProtobuf", package: "swift-protobuf"),
                .product(name: "X509", package: "swift-certificates"),
            ]),
        // What the fuzzer does with bytes, for the fuzzer and for the test that replays its corpus.
        .target(
            name: "FuzzEntries",
            dependencies: [
                "Ubiquity", "UbiquityCore", "UbiquityHTTP", "UbiquityServer", "UbiquityWire",
                .product(name: "GRDB", package: "GRDB.swift"),
                .product(name: "NIOCore", package: "swift-nio"),
                .product(name: "NIOHTTP1", package: "swift-nio"),
                .product(name: "SwiftProtobuf", package: "swift-protobuf"),
            ],
            path: "Tests/Fuzz/Entries"),
        .testTarget(name: "FuzzCorpusTests", dependencies: ["FuzzEntries"]),
        // What the examples have in common: the terminal, and two devices with a server of their own.
        .target(name: "ExampleScreen", path: "Examples/Screen", packageAccess: false),
        .target(
            name: "ExampleStage",
            dependencies: [
                "ExampleScreen", "ProcessHarness", "Ubiquity", "UbiquityDefaults",
                .product(name: "Logging", package: "swift-log"),
            ],
            path: "Examples/Stage"),
        // Two devices and a server, told and checked step by step: `make demo`.
        .executableTarget(
            name: "Demo",
            dependencies: [
                "ProcessHarness", "Ubiquity", "UbiquityCore",
                .product(name: "ArgumentParser", package: "swift-argument-parser"),
                .product(name: "Logging", package: "swift-log"),
            ],
            path: "Examples/Demo"),
        .testTarget(
            name: "ExampleTests",
            dependencies: ["ExampleScreen", "ExampleStage", "Ubiquity", "UbiquityDefaults"]
                + ["UbiquityTesting"] + examples.map { .target(name: $0) },
            packageAccess: false),
    ],
    swiftLanguageModes: [.v6]
)

// Each is an app, and sees what an app sees.
for example in examples {
    package.targets.append(
        .executableTarget(
            name: example,
            dependencies: ["ExampleScreen", "ExampleStage", "Ubiquity", "UbiquityDefaults"],
            path: "Examples/\(example)", packageAccess: false))
}

// For `make fuzz` only: the program has libFuzzer's `main`, which no other build links.
if Context.environment["UBIQUITY_FUZZ"] != nil {
    package.targets.append(
        .executableTarget(
            name: "FuzzProgram", dependencies: ["FuzzEntries"], path: "Tests/Fuzz/Program",
            linkerSettings: [.linkedLibrary("stdc++", .when(platforms: [.linux]))]))
}

// For `make benchmark` only: no other build compiles them.
if Context.environment["UBIQUITY_BENCHMARKS"] != nil {
    package.products.append(
        .executable(name: "ubiquity-benchmarks", targets: ["UbiquityBenchmarks"]))
    package.targets += [
        .target(name: "AllocationCount", path: "Tests/Benchmarks/AllocationCount"),
        .executableTarget(
            name: "UbiquityBenchmarks",
            dependencies: [
                "AllocationCount", "ProcessHarness", "Ubiquity",
                .product(name: "ArgumentParser", package: "swift-argument-parser"),
            ],
            path: "Tests/Benchmarks/Program"),
    ]
}

// In CI a warning is an error; with those who use the package it is none of their business.
let strictSettings: [SwiftSetting] =
    Context.environment["UBIQUITY_STRICT"] == nil ? [] : [.treatAllWarnings(as: .error)]

let houseSettings: [SwiftSetting] = [
    .enableUpcomingFeature("ExistentialAny"),
    .enableUpcomingFeature("InternalImportsByDefault"),
    .enableUpcomingFeature("MemberImportVisibility"),
    .enableUpcomingFeature("NonisolatedNonsendingByDefault"),
]

// For the archive of `make package` only: a program that needs no shared library but those of libc. The
// folder has links to the other libraries' archives, where the linker looks first.
if let archives = Context.environment["UBIQUITY_ARCHIVES"] {
    for target in package.targets where target.name == "UbiquityCLI" {
        target.linkerSettings = [
            .unsafeFlags(["-L\(archives)", "-Xclang-linker", "-static-libgcc"])
        ]
    }
}

// An app that has none of the programs fetches none of the packages that only they need. Whatever needs
// one depends on the target that says what to do.
for target in package.targets where !["Ubiquity", "UbiquityWire"].contains(target.name) {
    let dependencies = target.dependencies.map { dependency -> Target.Dependency in
        guard case .productItem(let name, let package, _, _) = dependency else { return dependency }
        return .product(
            name: name, package: package ?? name, condition: .when(traits: ["Server"]))
    }
    guard dependencies.contains(where: { if case .productItem = $0 { true } else { false } })
    else { continue }
    target.dependencies = dependencies + ["ServerTrait"]
}

// One loop, so that no target is forgotten. Apps do not have the house's settings.
for target in package.targets {
    let isApp = target.name.hasPrefix("DropIn") || examples.contains(target.name)
    target.swiftSettings =
        (target.swiftSettings ?? []) + strictSettings
        + (isApp ? [] : houseSettings)
}

// For `make test-tsan` only: the sanitizer does not understand the mutex of Synchronization, so that a
// module of our own goes by that name.
if Context.environment["UBIQUITY_TSAN"] != nil {
    for target in package.targets where !["CCurl", "CLibpq"].contains(target.name) {
        target.dependencies.append("ThreadSanitizerMutex")
        target.swiftSettings?.append(contentsOf: [
            .define("UBIQUITY_TSAN"),
            .unsafeFlags(["-module-alias", "Synchronization=ThreadSanitizerMutex"]),
        ])
    }
    package.targets.append(
        .target(
            name: "ThreadSanitizerMutex", path: "Tests/ThreadSanitizer",
            exclude: ["suppressions.txt"]))
}

// What scripts/commit prints, for --version: what is handed out has it.
if let commit = Context.environment["UBIQUITY_COMMIT"], !commit.isEmpty {
    for target in package.targets where target.name == "BuildCommit" {
        target.cSettings = [.define("UBIQUITY_COMMIT", to: "\"\(commit)\"")]
    }
}
