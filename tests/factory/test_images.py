"""Operators on images, judged by Pillow, NumPy and imagehash."""

from __future__ import annotations

import os
import pickle
import random
import subprocess
import sys
from io import BytesIO
from pathlib import Path
from typing import Any

import imagehash  # type: ignore[import-not-found]
import numpy as np
import pyarrow as pa  # type: ignore[import-untyped]
import pytest
from PIL import Image, ImageCms, ImageFilter

from factory.pictures import STRUCT, bad, column, digits, encoded, good, photos, turned
from safetensors_spark._errors import MissingExtraError
from safetensors_spark.factory._apply import outcome
from safetensors_spark.factory._operator import Operator
from safetensors_spark.factory.operators.image_decode import ImageDecode
from safetensors_spark.factory.operators.image_info import ImageInfo
from safetensors_spark.factory.operators.image_resize import ImageResize
from safetensors_spark.factory.operators.perceptual_hash import PerceptualHash

OPERATORS: list[Operator] = [
    ImageInfo(),
    ImageInfo(decode=True, prefix="img_"),
    ImageDecode(on_error="null"),
    ImageDecode(mode="L", shape=(30, 40), on_error="null"),
    ImageResize(size=20, on_error="null"),
    PerceptualHash(),
]
KINDS = [STRUCT, pa.binary(), pa.large_binary()]


def _columns(operator: Operator, batch: pa.RecordBatch) -> dict[str, pa.Array]:
    columns = outcome(operator, batch, quarantine=False).columns
    assert columns is not None
    return columns


def result(operator: Operator, batch: pa.RecordBatch) -> dict[str, list[Any]]:
    operator.load()
    return {name: values.to_pylist() for name, values in _columns(operator, batch).items()}


def opened(data: bytes) -> Image.Image:
    return Image.open(BytesIO(data))


@pytest.fixture(params=OPERATORS, ids=lambda one: type(one).__name__)
def operator(request: pytest.FixtureRequest) -> Operator:
    one: Operator = request.param
    return one


def test_an_empty_batch_gives_empty_columns(operator: Operator) -> None:
    for kind in KINDS if not isinstance(operator, ImageResize) else [STRUCT]:
        assert all(values == [] for values in result(operator, column([], kind)).values())


def test_rows_without_an_image_are_null(operator: Operator) -> None:
    batch = pa.record_batch({"image": pa.nulls(3)})
    assert all(values == [None] * 3 for values in result(operator, batch).values())
    batch = pa.record_batch({"image": pa.array([None, {"bytes": None, "path": None}], STRUCT)})
    found = result(operator, batch)
    assert all(values == [None, None] for name, values in found.items() if name != "image")
    if isinstance(operator, ImageResize):
        assert found["image"] == [None, None]


def test_a_slice_gives_what_its_rows_give(operator: Operator) -> None:
    rows: list[bytes | None] = [None, *good().values(), None, *(data for data, _ in bad().values())]
    whole = result(operator, column(rows))
    part = result(operator, column(rows).slice(3, 14))
    assert part == {name: values[3:17] for name, values in whole.items()}


def test_binary_gives_what_structs_give() -> None:
    rows: list[bytes | None] = [*good().values(), None, *(data for data, _ in bad().values())]
    for operator in (one for one in OPERATORS if not isinstance(one, ImageResize)):
        structs, *others = (result(operator, column(rows, kind)) for kind in KINDS)
        assert all(other == structs for other in others)
    structs = result(ImageResize(size=20, on_error="null"), column(rows))
    of_binary = result(ImageResize(size=20, on_error="null", stored="binary"), column(rows, pa.large_binary()))
    assert of_binary["image"] == [one and one["bytes"] for one in structs["image"]]


def test_pickled_operators_do_the_same(operator: Operator) -> None:
    batch = column(list(good().values()))
    operator.load()
    again = pickle.loads(pickle.dumps(operator))
    assert again == operator
    assert result(again, batch) == result(operator, batch)


def test_another_type_of_field_is_named(operator: Operator) -> None:
    with pytest.raises(ValueError, match="field `image` is int64"):
        result(operator, pa.record_batch({"image": [1, 2]}))


def test_an_image_that_is_a_path_is_read_from_the_file(operator: Operator, tmp_path: Path) -> None:
    file = tmp_path / "photo.png"
    file.write_bytes(good()["png"])
    batch = pa.record_batch({"image": pa.array([{"bytes": None, "path": str(file)}], STRUCT)})
    found = result(operator, batch)
    expected = result(operator, column([good()["png"]]))
    if isinstance(operator, ImageResize):
        assert found["image"] == [{"bytes": expected["image"][0]["bytes"], "path": str(file)}]
    else:
        assert found == expected


def test_a_path_that_is_no_file_is_an_error() -> None:
    rows = [{"bytes": None, "path": path} for path in ("/dev/zero", "nowhere.png", "hf://datasets/a/b.png")]
    found = result(ImageInfo(), pa.record_batch({"image": pa.array(rows, STRUCT)}))
    assert found["image_error"] == [f"no bytes, and no file here: {row['path']}" for row in rows]


def test_a_missing_pillow_is_named_with_the_extra(operator: Operator, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("safetensors_spark._extras.find_spec", lambda name: None)
    with pytest.raises(MissingExtraError, match=r"PIL(.|\n)*safetensors-spark\[factory\]"):
        operator.load()


# image_info


@pytest.mark.parametrize("name", good())
def test_info_is_what_pillow_says(name: str) -> None:
    data = good()[name]
    image = opened(data)
    width, height = (30, 40) if name == "turned" else image.size
    for decode in (False, True):
        found = result(ImageInfo(decode=decode), column([data]))
        assert found == {
            "width": [width],
            "height": [height],
            "image_format": [image.format],
            "image_mode": [image.mode],
            "aspect": [width / height],
            "image_error": [None],
        }


@pytest.mark.parametrize("name", bad())
def test_what_cannot_be_decoded_has_an_error_and_nothing_else(name: str) -> None:
    data, said = bad()[name]
    found = {key: values[0] for key, values in result(ImageInfo(decode=True), column([data])).items()}
    assert said in found.pop("image_error")
    assert set(found.values()) == {None}


@pytest.mark.parametrize("name", ["cut", "no pixels"])
def test_a_whole_header_is_enough_without_decode(name: str) -> None:
    assert result(ImageInfo(), column([bad()[name][0]]))["image_error"] == [None]


@pytest.mark.filterwarnings("ignore")  # What TIFF files with broken tags are told by Pillow.
def test_no_bytes_whatever_raise() -> None:
    numbers = random.Random(1)
    rows: list[bytes | None] = []
    for data in good().values():
        for _ in range(20):
            broken = bytearray(data[: numbers.randrange(1, len(data))] if numbers.random() < 0.3 else data)
            for _ in range(numbers.randrange(1, 20)):
                broken[numbers.randrange(min(len(broken), 200))] = numbers.randrange(256)
            rows.append(bytes(broken))
    found = result(ImageInfo(decode=True), column(rows))
    assert 0 < sum(one is not None for one in found["image_error"]) < len(rows)
    assert not any("0x" in one for one in found["image_error"] if one)
    result(ImageDecode(on_error="null", max_pixels=100_000), column(rows))
    result(ImageResize(size=8, on_error="null"), column(rows))
    result(PerceptualHash(), column(rows))


def test_a_limit_of_pixels_can_be_lower() -> None:
    found = result(ImageInfo(max_pixels=640 * 427 - 1), column([good()["jpeg"], good()["dot"]]))
    assert found["image_error"] == ["more than 273,279 pixels", None]


# image_decode


@pytest.mark.parametrize("mode", ["RGB", "L"])
def test_pixels_are_those_of_pillow(mode: Any) -> None:
    names = ["jpeg", "png", "grey", "dot", "webp", "alpha", "cmyk", "palette", "gif"]
    found = result(ImageDecode(mode=mode), column([good()[name] for name in names]))
    for name, pixels, shape in zip(names, found["pixels"], found["pixels_shape"], strict=True):
        image = opened(good()[name]).convert(mode)
        assert shape == [image.height, image.width, len(mode)], name
        np.testing.assert_array_equal(np.array(pixels).reshape(shape), np.array(image).reshape(shape), name)


def test_digits_have_a_fixed_shape() -> None:
    rows: list[bytes | None] = [encoded(one, "PNG") for one in digits()]
    operator = ImageDecode(mode="L", shape=(8, 8))
    assert operator.writes["pixels"] == pa.list_(pa.uint8(), 64)
    (pixels, shapes) = _columns(operator, column([*rows[:50], None, *rows[50:]])).values()
    assert pixels.is_null().to_pylist() == [number == 50 for number in range(101)]
    assert shapes.drop_null().to_pylist() == [[8, 8, 1]] * 100
    found = np.array(pixels.drop_null().to_pylist()).reshape(-1, 8, 8)
    np.testing.assert_array_equal(found, np.stack([np.asarray(one) for one in digits()]))


def test_deep_pixels_are_scaled() -> None:
    (pixels,) = result(ImageDecode(mode="L"), column([good()["deep"]]))["pixels"]
    np.testing.assert_array_equal(pixels, np.rint(np.arange(1200) * 54 / 257))


@pytest.mark.parametrize("orientation", range(1, 9))
def test_pixels_lie_upright(orientation: int) -> None:
    image = photos()[1].resize((64, 48))
    undo = {2: 0, 3: 3, 4: 1, 5: 5, 6: 2, 7: 6, 8: 4}
    lying = image.transpose(Image.Transpose(undo[orientation])) if orientation > 1 else image
    (found,) = result(ImageDecode(), column([turned(lying, orientation)]))["pixels"]
    difference = np.array(found).reshape(48, 64, 3) - np.asarray(image).astype(int)
    assert np.abs(difference).mean() < 6


@pytest.mark.parametrize("operator", [ImageDecode(), ImageResize(size=8)], ids=["decode", "resize"])
@pytest.mark.parametrize("name", bad())
def test_the_row_that_cannot_be_decoded_is_named(operator: Operator, name: str) -> None:
    with pytest.raises(ValueError, match=r"row 2: `image` cannot be (decoded|resized): .*" + bad()[name][1]):
        result(operator, column([good()["png"], None, bad()[name][0]]))


def test_another_shape_is_an_error() -> None:
    with pytest.raises(ValueError, match="row 0: `image` cannot be decoded: 427 x 640 pixels, expected 8 x 8"):
        result(ImageDecode(shape=(8, 8)), column([good()["jpeg"]]))


# image_resize


def resized(operator: ImageResize, data: bytes) -> bytes:
    found: bytes = result(operator, column([data]))["image"][0]["bytes"]
    return found


@pytest.mark.parametrize("name", good())
@pytest.mark.parametrize("size", [16, 100, (24, 50)])
def test_images_get_the_size_and_keep_the_format(name: str, size: Any) -> None:
    before = opened(good()[name])
    after = opened(resized(ImageResize(size=size), good()[name]))
    after.load()
    if isinstance(size, tuple):
        assert after.size == size
    else:
        upright = before.size[::-1] if name == "turned" else before.size
        assert min(after.size) == size
        assert after.size == tuple(round(size * side / min(upright)) for side in upright)
    assert after.format == before.format


@pytest.mark.parametrize("name", good())
@pytest.mark.parametrize("format_of", ["JPEG", "PNG", "WEBP"])
def test_every_image_is_written_in_every_format(name: str, format_of: Any) -> None:
    after = opened(resized(ImageResize(size=16, format=format_of), good()[name]))
    after.load()
    assert after.format == format_of
    assert not after.getexif()


@pytest.mark.parametrize(("size", "most"), [((150, 100), 1), ((90, 60), 2)])
def test_resized_photos_look_like_pillows(size: tuple[int, int], most: float) -> None:
    for photo in photos():
        expected = np.asarray(photo.resize(size, Image.Resampling.LANCZOS)).astype(int)
        for data in (encoded(photo, "PNG"), encoded(photo, "JPEG", quality=95)):
            found = opened(resized(ImageResize(size=min(size), format="PNG"), data)).convert("RGB")
            assert np.abs(np.asarray(found) - expected).mean() < most


def test_deep_images_stay_deep() -> None:
    after = opened(resized(ImageResize(size=15), good()["deep"]))
    assert after.mode == "I;16"
    assert abs(float(np.asarray(after).mean()) - 1199 / 2 * 54) < 100


def test_a_second_run_changes_nothing() -> None:
    operator = ImageResize(size=16)
    for name, data in good().items():
        once = resized(operator, data)
        assert resized(operator, once) == once, name


def test_a_broken_image_of_the_right_size_is_an_error() -> None:
    with pytest.raises(ValueError, match=r"row 0: .*truncated"):
        resized(ImageResize(size=427), bad()["cut"][0])


def test_quality_decides_the_size() -> None:
    sizes = [len(resized(ImageResize(size=200, quality=quality), good()["jpeg"])) for quality in (10, 50, 95)]
    assert sizes == sorted(set(sizes))


def test_a_colour_profile_stays() -> None:
    profile = ImageCms.ImageCmsProfile(ImageCms.createProfile("sRGB")).tobytes()
    data = encoded(photos()[0], "JPEG", icc_profile=profile, comment=b"hello")
    after = opened(resized(ImageResize(size=50), data))
    assert after.info["icc_profile"] == profile
    assert "comment" not in after.info


def test_a_format_that_is_not_written_is_an_error() -> None:
    data = encoded(photos()[0].resize((32, 32)), "ICO")
    with pytest.raises(ValueError, match="ICO is not written: name a `format`"):
        resized(ImageResize(size=16), data)
    assert opened(resized(ImageResize(size=16, format="PNG"), data)).size == (16, 16)


def test_an_image_that_would_become_too_large_is_an_error() -> None:
    data = encoded(Image.new("L", (10_000, 1)), "PNG")
    with pytest.raises(ValueError, match=r"row 0: .*100,000,000 x 10,000 pixels"):
        resized(ImageResize(size=10_000), data)


def test_bytes_are_the_same_in_each_process() -> None:
    script = (
        "import hashlib; from factory.test_images import *; from factory.pictures import *\n"
        "batch = column([*good().values(), *(data for data, _ in bad().values())])\n"
        "print(hashlib.sha256(repr([result(one, batch) for one in OPERATORS]).encode()).hexdigest())"
    )
    found = set()
    for seed in ("0", "1"):
        environment = os.environ | {"PYTHONHASHSEED": seed, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
        run = subprocess.run(
            [sys.executable, "-c", script], env=environment, capture_output=True, text=True, check=True
        )
        found.add(run.stdout)
    assert len(found) == 1


# perceptual_hash


def hashes(images: list[Image.Image]) -> list[str]:
    return [str(one) for one in result(PerceptualHash(), column([encoded(one, "PNG") for one in images]))["phash"]]


def distance(one: str, other: str) -> int:
    return (int(one, 16) ^ int(other, 16)).bit_count()


def test_hashes_are_those_of_imagehash() -> None:
    crops = [
        photo.crop((x, y, x + 200, y + 150)) for photo in photos() for x in range(0, 440, 40) for y in (0, 90, 270)
    ]
    images = [*photos(), *crops, *digits()]
    assert hashes(images) == [str(imagehash.phash(one)) for one in images]


def test_images_that_look_alike_have_near_hashes() -> None:
    for photo in photos():
        alike = [
            photo.resize((320, 213)),
            opened(encoded(photo, "JPEG", quality=30)).convert("RGB"),
            photo.filter(ImageFilter.GaussianBlur(2)),
            photo.point(lambda value: min(255, int(value * 1.1))),
        ]
        first, *others = hashes([photo, *alike])
        assert all(distance(first, other) <= 8 for other in others)
    first, second = hashes(list(photos()))
    assert distance(first, second) > 16


def test_a_turn_by_exif_keeps_the_hash() -> None:
    photo = photos()[0]
    data = [turned(photo.transpose(Image.Transpose.ROTATE_90), 6), turned(photo, 1)]
    first, second = result(PerceptualHash(), column(list(data)))["phash"]
    assert distance(first, second) <= 2


def test_pictures_of_one_colour_have_one_hash() -> None:
    assert set(hashes([Image.new("L", (50, 40), level) for level in (1, 77, 255)])) == {"8000000000000000"}
    assert hashes([Image.new("L", (9, 9), 0)]) == ["0000000000000000"]


def test_what_cannot_be_decoded_has_no_hash() -> None:
    found = result(PerceptualHash(), column([data for data, _ in bad().values()]))
    assert found["phash"] == [None] * len(bad())
