// swift-tools-version: 6.2
// SPDX-License-Identifier: Apache-2.0

import PackageDescription

// A package of its own, so that what it needs never reaches a user of the library.
let package = Package(
    name: "ubiquity-benchmarks",
    platforms: [.macOS(.v15)],
    dependencies: [
        .package(name: "ubiquity", path: ".."),
        .package(url: "https://github.com/apple/swift-argument-parser", from: "1.8.2"),
    ],
    targets: [
        .target(name: "AllocationCount"),
        .executableTarget(
            name: "ubiquity-benchmarks",
            dependencies: [
                "AllocationCount",
                // The program, so that one build makes the server too.
                .product(name: "ubiquity", package: "ubiquity"),
                .product(name: "Ubiquity", package: "ubiquity"),
                .product(name: "ArgumentParser", package: "swift-argument-parser"),
            ],
            path: "Sources/UbiquityBenchmarks",
            swiftSettings: [
                .enableUpcomingFeature("ExistentialAny"),
                .enableUpcomingFeature("InternalImportsByDefault"),
                .enableUpcomingFeature("MemberImportVisibility"),
                .enableUpcomingFeature("NonisolatedNonsendingByDefault"),
            ]),
    ],
    swiftLanguageModes: [.v6]
)
